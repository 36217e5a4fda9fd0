// The case runner of Node: does what each line says, with the public client, and reports what came of it.
import { createInterface } from "node:readline";
import { connect, RpcError, TricornError } from "tricorn";

const clients = new Map();
/** Those that another took the number of, too: what hears keeps a program running. */
const opened = new Set();
const notifications = new Map();
const questions = new Map();
const running = new Map();

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

function failure(error, signal) {
  if (signal.aborted && error === signal.reason) return { kind: "cancelled_here", message: String(error) };
  if (!(error instanceof TricornError)) return { kind: "exception", message: String(error?.stack ?? error) };
  const { kind, message, code, data } = error;
  return { kind, message, code, data };
}

/** Cases have seconds and snake_case; this language has milliseconds and camelCase. */
const DURATIONS = new Set([
  "request_timeout",
  "probe_timeout",
  "shutdown_grace",
  "ping_interval",
  "ping_timeout",
  "timeout",
  "max_timeout",
  "login_timeout",
]);
const ours = (options) =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      DURATIONS.has(name) && value !== null ? value * 1000 : value,
    ]),
  );

/** Options of a client, of which `auth` has options of its own. */
const oursWithAuth = ({ auth, ...options }) => ({ ...ours(options), ...(auth && { auth: ours(auth) }) });

const info = (key, client) => ({
  protocolVersion: client.protocolVersion,
  era: client.era,
  serverInfo: client.serverInfo,
  capabilities: client.capabilities,
  instructions: client.instructions,
  initializeResult: client.initializeResult,
  sessionId: client.sessionId,
  notifications: notifications.get(key),
  asked: questions.get(key),
});

/** Returns handlers that record each question of the server, then answer as the case says. */
function handlers({ roots, sampling, sampling_tools, elicitation, elicitation_url }, asked) {
  const says = (answer, question) => (params) => {
    asked.push(question(params));
    if (answer?.error) throw new RpcError(answer.error.code, answer.error.message);
    return answer;
  };
  const form = elicitation && says(elicitation, ({ message, requestedSchema }) => ({ form: requestedSchema, message }));
  const page = ({ url, message, elicitationId }) => ({ url, message, elicitationId });
  const url = elicitation_url && says(elicitation_url, page);
  const model = sampling && { answer: says(sampling, (params) => ({ sampling: params })), tools: sampling_tools };
  return {
    ...(roots && { roots }),
    ...(model && { sampling: model }),
    ...((form || url) && { elicitation: { ...(form && { form }), ...(url && { url }) } }),
  };
}

const LISTS = {
  resources: (client) => client.listResources(),
  resource_templates: (client) => client.listResourceTemplates(),
  prompts: (client) => client.listPrompts(),
};

const PAGES = {
  tools: (client, cursor) => client.listToolsPage(cursor),
  resources: (client, cursor) => client.listResourcesPage(cursor),
  resource_templates: (client, cursor) => client.listResourceTemplatesPage(cursor),
  prompts: (client, cursor) => client.listPromptsPage(cursor),
};

const commands = {
  async connect({ client: key, target, options, answers = {} }) {
    const heard = [];
    const asked = [];
    questions.set(key, asked);
    notifications.set(key, heard);
    const onNotification = (method, params) => heard.push({ method, params });
    const client = await connect(target, { ...oursWithAuth(options), ...handlers(answers, asked), onNotification });
    clients.set(key, client);
    opened.add(client);
    return info(key, client);
  },
  cancel({ call }) {
    running.get(call).abort();
    return {};
  },
  async close({ client: key }) {
    await clients.get(key)?.close();
    opened.delete(clients.get(key));
    clients.delete(key);
    return {};
  },
  info: ({ client: key }) => info(key, clients.get(key)),
  list_tools: ({ client: key }) => clients.get(key).listTools(),
  list_tools_page: ({ client: key, cursor }) => clients.get(key).listToolsPage(cursor),
  async call_tool({ id, client: key, name, arguments: args, timeout, max_timeout, meta, progress, whole }, signal) {
    const options = { signal, ...(meta && { meta }), ...ours({ ...(max_timeout && { max_timeout }) }) };
    if (timeout !== undefined) Object.assign(options, ours({ timeout }));
    if (progress) options.onProgress = (progress) => say({ id, progress });
    const result = await clients.get(key).callTool(name, args, options);
    if (whole) return result.raw;
    const { text, structured, isError, content, meta: resultMeta } = result;
    return { text, structured, is_error: isError, content, meta: resultMeta };
  },
  list: ({ client: key, what }) => LISTS[what](clients.get(key)),
  list_page: ({ client: key, what, cursor }) => PAGES[what](clients.get(key), cursor),
  async read_resource({ client: key, uri, whole }) {
    const { raw } = await clients.get(key).readResource(uri);
    return whole ? raw : raw.contents;
  },
  async subscribe({ client: key, uri }) {
    await clients.get(key).subscribe(uri);
    return {};
  },
  async unsubscribe({ client: key, uri }) {
    await clients.get(key).unsubscribe(uri);
    return {};
  },
  get_prompt: ({ client: key, name, arguments: args }) => clients.get(key).getPrompt(name, args),
  async complete({ client: key, prompt, template, argument, value, context, whole }) {
    const ref = prompt ? { type: "ref/prompt", name: prompt } : { type: "ref/resource", uri: template };
    const found = await clients.get(key).complete(ref, argument, value, context);
    return whole ? found.raw : found;
  },
  async set_log_level({ client: key, level }) {
    await clients.get(key).setLogLevel(level);
    return {};
  },
  set_roots({ client: key, roots }) {
    clients.get(key).setRoots(roots);
    return {};
  },
  roots_changed({ client: key }) {
    clients.get(key).rootsChanged();
    return {};
  },
  wait_for_task: ({ client: key, task }) => clients.get(key).task(task).wait(),
  async ping({ client: key }) {
    await clients.get(key).ping();
    return {};
  },
  request: ({ client: key, method, params }) => clients.get(key).request(method, params),
  notify({ client: key, method, params }) {
    clients.get(key).notify(method, params);
    return {};
  },
  metrics: ({ client: key }) => clients.get(key).metrics(),
};

async function answer(command) {
  const { id } = command;
  const abort = new AbortController();
  running.set(id, abort);
  try {
    say({ id, result: await commands[command.do](command, abort.signal) });
  } catch (error) {
    say({ id, error: failure(error, abort.signal) });
  } finally {
    running.delete(id);
  }
}

for await (const line of createInterface({ input: process.stdin })) answer(JSON.parse(line));
await Promise.all([...opened].map((client) => client.close()));
