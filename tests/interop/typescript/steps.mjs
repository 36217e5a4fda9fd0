// What the clients on both versions of the official TypeScript SDK share: the steps of a plan, and what is heard.

/** Milliseconds for what a server sends by itself. */
const WAIT = 10_000;

export const plan = JSON.parse(process.argv[2]);

/** Returns the answer of the model of these tests: that it heard the question. */
export function sampled({ params }) {
  const { content } = params.messages.at(-1);
  const { text } = Array.isArray(content) ? content[0] : content;
  return { role: "assistant", model: "interop", content: { type: "text", text: `heard ${text}` } };
}

export const elicited = () => ({ action: "accept", content: plan.answers.elicitation });
export const rooted = () => ({ roots: plan.answers.roots.map((uri) => ({ uri })) });

const heard = { uris: [], logs: [], changes: [] };
let more = () => {};

export function updated({ params }) {
  heard.uris.push(params.uri);
  changed(params.uri);
}

/** Notes what has changed: the URI of a resource, or `tools`. */
export function changed(what) {
  heard.changes.push(what);
  more();
}

export function logged({ params }) {
  heard.logs.push(params.data);
  more();
}

export async function wait(what, count) {
  const late = AbortSignal.timeout(WAIT);
  while (heard[what].length < count) {
    await new Promise((resolve, reject) => {
      more = resolve;
      late.addEventListener("abort", () => reject(new Error(`heard only ${JSON.stringify(heard[what])}`)));
    });
  }
  return { [what]: [...heard[what]] };
}

async function names(list, member, name) {
  const names = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    names.push(...page[member].map((entry) => entry[name]));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { names };
}

/** Plays the plan and reports. `call(params, options)` is the version's `callTool`; `newest` has more steps. */
export async function play(client, revision, call, newest = {}) {
  const steps = {
    tools: () => names((page) => client.listTools(page), "tools", "name"),
    resources: () => names((page) => client.listResources(page), "resources", "uri"),
    templates: () => names((page) => client.listResourceTemplates(page), "resourceTemplates", "uriTemplate"),
    prompts: () => names((page) => client.listPrompts(page), "prompts", "name"),
    call: async ({ name, arguments: args, progress: asked }) => {
      const progress = [];
      const options = asked ? { onprogress: (p) => progress.push([p.progress, p.total]) } : undefined;
      const result = await call({ name, arguments: args }, options);
      return {
        error: result.isError === true,
        text: result.content[0]?.text ?? "",
        types: result.content.map((block) => block.type),
        structured: result.structuredContent ?? null,
        progress,
      };
    },
    read: async ({ uri }) => (await client.readResource({ uri })).contents[0],
    prompt: async ({ name, arguments: args }) => {
      const [{ role, content }] = (await client.getPrompt({ name, arguments: args })).messages;
      return { role, text: content.text };
    },
    complete: async ({ prompt, argument, value }) => {
      const params = { ref: { type: "ref/prompt", name: prompt }, argument: { name: argument, value } };
      return { values: (await client.complete(params)).completion.values };
    },
    subscribe: ({ uri }) => client.subscribeResource({ uri }),
    unsubscribe: ({ uri }) => client.unsubscribeResource({ uri }),
    level: ({ level }) => client.setLoggingLevel(level),
    updated: ({ count }) => wait("uris", count),
    logs: ({ count }) => wait("logs", count),
    ...newest,
  };
  const said = [];
  for (const step of plan.steps) {
    try {
      said.push({ result: await steps[step.do](step) });
    } catch (error) {
      said.push({ error: String(error) });
    }
  }
  process.stdout.write(`${JSON.stringify({ protocolVersion: revision, steps: said })}\n`);
}
