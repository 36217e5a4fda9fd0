// A server of a program that hears a signal itself, or not.
import { Server } from "tricorn";

const [, , signal, own] = process.argv;
process.on("exit", () => console.error("at exit"));
if (own) {
  process.on(signal, () => {
    console.error("own handler");
    if (own === "exits") process.exit(7);
  });
}
const lifespan = { start: () => console.error("started"), stop: () => console.error("stopped") };
await new Server("own", { lifespan }).run();
