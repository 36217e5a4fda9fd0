// A server whose lifespan takes longer to stop than a handler may go on after a signal.
import { Server } from "tricorn";

const lifespan = {
  start: () => {
    console.error("started");
    return {};
  },
  stop: async () => {
    await new Promise((done) => setTimeout(done, 700));
    console.error("stopped");
  },
};
await new Server("alive", { lifespan }).run();
