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
  // Of older revisions they are another thing.
  tasks: revision === null,
});

let listening;
const changes = [];

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
  listen: async ({ tools, uris }) => {
    listening = client.listen({ tools, uris });
    const honoured = await listening.honoured;
    return { tools: honoured.tools, uris: honoured.uris };
  },
  changes: async ({ count }) => {
    const late = setTimeout(() => listening.close(), WAIT);
    while (changes.length < count) {
      const { value, done } = await listening.next();
      if (done) throw new Error(`heard only ${changes}`);
      changes.push(value.uri ?? (value.type === "toolsListChanged" ? "tools" : value.type));
    }
    clearTimeout(late);
    return { changes: [...changes] };
  },
  unlisten: () => listening.close(),
  cached: async ({ uri }) => {
    const ask = () => (uri ? client.readResource(uri) : client.listToolsPage());
    await ask();
    const { hits } = client.metrics().cache;
    const said = await ask();
    const { ttlMs, cacheScope } = said.raw ?? said;
    return { ttlMs, cacheScope, kept: client.metrics().cache.hits > hits };
  },
  task: async ({ name, arguments: args }) => {
    const task = await client.callToolTask(name, args);
    const { isError, content } = await task.result();
    return { created: task.created.task.status, error: isError, text: content[0]?.text };
  },
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
