// Our client in Node: client.mjs PLAN
import { connect } from "tricorn";

/** Milliseconds for what a server sends by itself. */
const WAIT = 10_000;

const { target, revision, answers, steps } = JSON.parse(process.argv[2]);

const heard = { uris: [], logs: [] };
let more = () => {};
function hears(what, value) {
  heard[what].push(value);
  more();
}

async function wait(what, count) {
  const late = AbortSignal.timeout(WAIT);
  while (heard[what].length < count) {
    await new Promise((resolve, reject) => {
      more = resolve;
      late.addEventListener("abort", () => reject(new Error(`heard only ${JSON.stringify(heard[what])}`)));
    });
  }
  return { [what]: heard[what] };
}

const client = await connect(Array.isArray(target) ? { command: target[0], args: target.slice(1) } : target, {
  revision: revision ?? undefined,
  sampling: ({ messages }) => {
    const { content } = messages.at(-1);
    return `heard ${[content].flat()[0].text}`;
  },
  elicitation: () => answers.elicitation,
  roots: answers.roots,
  onLog: ({ data }) => hears("logs", data),
  onResourceUpdated: (uri) => hears("uris", uri),
});

const names = (list, name) => ({ names: list.map((entry) => entry[name]) });

const perform = {
  tools: async () => names(await client.listTools(), "name"),
  resources: async () => names(await client.listResources(), "uri"),
  templates: async () => names(await client.listResourceTemplates(), "uriTemplate"),
  prompts: async () => names(await client.listPrompts(), "name"),
  call: async ({ name, arguments: args, progress: asked }) => {
    const progress = [];
    const options = asked ? { onProgress: (p) => progress.push([p.progress, p.total]) } : {};
    const { isError, content, structured } = await client.callTool(name, args, options);
    return {
      error: isError,
      text: content[0]?.text ?? "",
      types: content.map((block) => block.type),
      structured: structured ?? null,
      progress,
    };
  },
  read: async ({ uri }) => (await client.readResource(uri)).raw.contents[0],
  prompt: async ({ name, arguments: args }) => {
    const [{ role, content }] = (await client.getPrompt(name, args)).messages;
    return { role, text: content.text };
  },
  complete: async ({ prompt, argument, value }) => {
    const { values } = await client.complete({ type: "ref/prompt", name: prompt }, argument, value);
    return { values };
  },
  subscribe: ({ uri }) => client.subscribe(uri),
  unsubscribe: ({ uri }) => client.unsubscribe(uri),
  level: ({ level }) => client.setLogLevel(level),
  updated: ({ count }) => wait("uris", count),
  logs: ({ count }) => wait("logs", count),
};

const said = [];
for (const step of steps) {
  try {
    said.push({ result: (await perform[step.do](step)) ?? {} });
  } catch (error) {
    said.push({ error: String(error) });
  }
}
process.stdout.write(`${JSON.stringify({ protocolVersion: client.protocolVersion, steps: said })}\n`);
await client.close();
