// The way to the command: events come on a stream, everything else is posted.

/** Hears: log, state, calls, questions, roots, progress, change, listening, cleared, begin, lost, gone, replaced. */
export const events = new EventTarget();

/** State that was told last. */
export const known = { state: {}, calls: [], questions: [], roots: [] };

const NAMES = [
  "log",
  "state",
  "calls",
  "questions",
  "roots",
  "progress",
  "done",
  "change",
  "listening",
  "cleared",
  "begin",
  "lost",
  "replaced",
];
const tab = crypto.randomUUID().slice(0, 8);
const waiting = new Map();
let count = 0;
let source = null;

export function tell(name, detail) {
  events.dispatchEvent(new CustomEvent(name, { detail }));
}

/** Begins to hear; again after this page was replaced by another one. */
export function listen() {
  source?.close();
  source = new EventSource("events");
  for (const name of NAMES) {
    source.addEventListener(name, (event) => hear(name, JSON.parse(event.data), event.data));
  }
  source.onopen = () => tell("open");
  source.onerror = () => tell("gone", { forever: source.readyState === EventSource.CLOSED });
}

let begun = false;

function hear(name, data, text) {
  if (name in known) known[name] = data;
  if (name === "begin") begun = true;
  if (name === "calls" && begun) {
    begun = false;
    // An end that nobody heard of is not told again.
    const going = new Set(data.map((call) => call.call));
    for (const [call, wait] of waiting) {
      if (!going.has(call) && performance.now() - wait.since > 3000) {
        settle({
          call,
          error: { message: "the answer was missed while this page was not connected; it is among the messages" },
        });
      }
    }
  }
  // Its last member, in the spelling in which it came.
  if (name === "done") settle({ ...data, text: text.slice(text.indexOf('"result":') + 9, -1) });
  if (name === "progress") waiting.get(data.call)?.progress?.(data.progress);
  if (name === "lost") listen();
  if (name === "replaced") source.close();
  tell(name, data);
}

function settle(done) {
  const wait = waiting.get(done.call);
  if (!wait) return;
  waiting.delete(done.call);
  wait.resolve(done);
}

/** Posts JSON text, or a value. */
export async function post(path, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body ?? {});
  let answer;
  try {
    answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: text });
  } catch {
    throw new Error("the command cannot be reached: has it ended?");
  }
  if (!answer.ok) throw new Error(await answer.text());
}

/**
 * Starts work. `params` is JSON text. Gives the name of the call and what it comes to: {result}, {error} or {cancelled}.
 */
export function start(what, of, { params, filter, progress } = {}) {
  const call = `${tab}-${++count}`;
  const done = new Promise((resolve) => waiting.set(call, { resolve, progress, since: performance.now() }));
  const members = [
    ["call", call],
    ["do", what],
    ["of", of ?? ""],
  ];
  if (filter) members.push(["filter", filter]);
  const texts = members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  if (params !== undefined) texts.push(`"params":${params}`);
  post("start", `{${texts.join(",")}}`).catch((error) => settle({ call, error: { message: error.message } }));
  return { call, done, cancel: () => post("cancel", { call }).catch(() => {}) };
}

/** Asks for a result; throws its error. */
export async function request(method, params) {
  const done = await start("request", method, { params: JSON.stringify(params ?? {}) }).done;
  if (done.error) throw Object.assign(new Error(done.error.message), done.error);
  if (done.cancelled) throw new Error("cancelled");
  return done.result;
}

/** True if the server declares this capability, a path with dots. */
export function has(path) {
  let at = known.state.capabilities;
  for (const name of path.split(".")) at = at?.[name];
  return at !== undefined && at !== null && at !== false;
}
