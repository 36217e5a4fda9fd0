// A program that takes its platform for Windows, where the engine cannot move the standard streams of Node.
const [what] = process.argv.slice(2);
const isWindows = what !== "twice-here";
if (isWindows) Object.defineProperty(process, "platform", { value: "win32" });
const say = (text) => process.stdout.write(`${text}\n`);
const { Server } = await import("tricorn");

// Elsewhere to look at stdin means to read it from then on.
const own = () => [process.stdout.write, isWindows && process.stdin];
const before = own();
const moved = () => own().map((one, at) => one !== before[at]);

const app = new Server("windows", {
  lifespan: {
    start: () => ({}),
    stop: () => {
      console.error("stopped");
    },
  },
});
app.tool("print", async () => {
  // biome-ignore lint/suspicious/noConsole: this is what is under test
  console.log("by console", "\u2713");
  const called = new Promise((resolve) => process.stdout.write(Buffer.from("by write\n"), resolve));
  await called;
  let read = "";
  for await (const chunk of process.stdin) read += chunk;
  return JSON.stringify([moved(), read]);
});
app.tool("break", () => process.emit("SIGBREAK", "SIGBREAK", 21));

if (what === "mounted") {
  const { url } = await app.listen(0);
  await fetch(url, { method: "POST", body: "{}" });
  say("begun");
  setTimeout(() => process.emit("SIGINT", "SIGINT", 2), 100);
} else if (what?.startsWith("twice")) {
  const first = app.serveStdio();
  const second = await new Server("other").serveStdio().catch((error) => error.name);
  console.error(JSON.stringify([second, moved()]));
  await first;
  say(JSON.stringify(moved()));
} else {
  await app.run();
  say(JSON.stringify(moved()));
}
