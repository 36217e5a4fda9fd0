// A client program that does what each line says, as tests/cases/runners do, and keeps nothing of what it gets.
// One JSON command a line on standard input, one line for each on standard output.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// The package is the one that the examples use.
const from = createRequire(new URL("../../cases/runners/node/runner.mjs", import.meta.url));
const { connect } = await import(pathToFileURL(from.resolve("tricorn")).href);
const clients = new Map();

const SECONDS = new Set(["request_timeout", "probe_timeout", "timeout"]);
const ours = (options) =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      SECONDS.has(name) && value !== null ? value * 1000 : value,
    ]),
  );

const handlers = ({ roots, sampling, elicitation }) => ({
  ...(roots && { roots }),
  ...(sampling && { sampling: { answer: () => sampling } }),
  ...(elicitation && { elicitation: { form: () => elicitation } }),
});

const commands = {
  async connect({ client: key, target, options: { auth, ...options }, answers = {} }) {
    const onNotification = () => {};
    const more = { ...ours(options), ...(auth && { auth: ours(auth) }), ...handlers(answers) };
    clients.set(key, await connect(target, { ...more, onNotification }));
  },
  async close({ client: key }) {
    await clients.get(key)?.close();
    clients.delete(key);
  },
  list_tools: ({ client: key }) => clients.get(key).listTools(),
  call_tool: ({ client: key, name, arguments: args, timeout }) =>
    clients.get(key).callTool(name, args, timeout === undefined ? {} : ours({ timeout })),
  ping: ({ client: key }) => clients.get(key).ping(),
  list: ({ client: key, what }) =>
    what === "resources" ? clients.get(key).listResources() : clients.get(key).listResourceTemplates(),
  read_resource: ({ client: key, uri }) => clients.get(key).readResource(uri),
  get_prompt: ({ client: key, name, arguments: args }) => clients.get(key).getPrompt(name, args),
  complete: ({ client: key, prompt, argument, value }) =>
    clients.get(key).complete({ type: "ref/prompt", name: prompt }, argument, value),
};

async function take(line) {
  const command = JSON.parse(line);
  let said = { id: command.id, result: {} };
  try {
    await commands[command.do](command);
  } catch (error) {
    said = { id: command.id, error: { kind: error.name, message: String(error.message).slice(0, 300) } };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
}

for await (const line of createInterface({ input: process.stdin })) void take(line);
await Promise.all([...clients.values()].map((client) => client.close()));
