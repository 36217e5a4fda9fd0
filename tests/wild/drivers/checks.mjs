// What every client is asked, in the same words: see README.md. A driver says how its client does each.
import { createInterface } from "node:readline";

const LIMIT = 40_000;
const TEXT = 'grüße 🦄 " \\ \n\t </script>';

/** Answers of the client's user and its model. */
export const USER = { username: "ada", email: "ada@example.com" };
export const model = (text) => `heard ${text}`;
export const lastText = (messages) => [messages.at(-1).content].flat()[0].text;

export const plan = JSON.parse(process.argv.at(-1));

/** Thrown for what a client has no way to do. */
export class Skip extends Error {}

export const say = (check, ok, note = "") => process.stdout.write(`${JSON.stringify({ check, ok, note })}\n`);
export const textOf = (blocks) => (blocks ?? []).map((block) => block.text ?? JSON.stringify(block)).join("\n");

export function why(error) {
  const at = (error?.stack ?? "").split("\n").find((line) => line.includes("    at ")) ?? "";
  const cause = error?.cause ? ` (${error.cause.message ?? error.cause})` : "";
  return `${error?.name ?? ""}: ${error?.message ?? error}${cause}`.slice(0, 400) + at.trim().slice(0, 120);
}

export function expect(ok, said) {
  if (!ok) throw new Error(`got ${JSON.stringify(said)?.slice(0, 400)}`);
}

async function within(body, limit = LIMIT) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no end")), limit);
  });
  try {
    return await Promise.race([body, late]);
  } finally {
    clearTimeout(timer);
  }
}

export async function check(name, body) {
  try {
    say(name, true, (await within(body())) ?? "");
  } catch (error) {
    if (error instanceof Skip) say(name, null);
    else say(name, false, why(error));
  }
}

let lines;
async function ask(what) {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  process.stdout.write(`${JSON.stringify({ ask: what })}\n`);
  await lines.next();
}

/** The server is ended and started again at its port. */
export const restart = () => ask("restart");
/** The server on standard streams is killed. */
export const kill = () => ask("kill");

function checksOf(it) {
  const none = () => {
    throw new Skip();
  };
  const can = (question) => {
    if (!it.answers?.includes(question)) none();
  };
  const slowCalls = async () => {
    const { error, text } = await it.call("test_metrics", {});
    expect(!error, text);
    const flat = text.replaceAll("\\", "").replaceAll(/\s/g, "");
    const number = (name) => Number(flat.slice(flat.lastIndexOf(`"${name}":`)).match(/:(\d+)/)?.[1]);
    return { cancelled: number("cancelled"), running: number("running") };
  };
  const real = async () => {
    const sum = await it.call("add", { a: 2, b: 40 });
    expect(!sum.error && sum.text.includes("42"), sum);
    const echo = await it.call("echo", { text: TEXT });
    expect(!echo.error && (echo.text.includes(TEXT) || echo.text.includes(JSON.stringify(TEXT).slice(1, -1))), echo);
  };
  return {
    list: async () => {
      const names = await it.tools();
      expect(
        names.some((name) => name.endsWith("add")),
        names,
      );
      return `${names.length} tools`;
    },
    call: real,
    "tool error": async () => {
      const said = await it.call("fail", { kind: "tool" });
      expect(said.error && said.text.includes("the tool says no"), said);
    },
    "50 at once": async () => {
      const said = await Promise.all(Array.from({ length: 50 }, (_, n) => it.call("add", { a: n, b: 1000 })));
      const wrong = said.filter((got, n) => got.error || !got.text.includes(String(n + 1000)));
      expect(wrong.length === 0, wrong[0]);
    },
    cancel: async () => {
      if (!it.cancels) none();
      const before = await slowCalls();
      const stop = new AbortController();
      const call = it.call("slow", { ms: 20_000 }, stop.signal).then(
        () => "went on",
        () => "cancelled",
      );
      const end = Date.now() + 10_000;
      // Each question is a round to the server, so nothing spins.
      while ((await slowCalls()).running <= before.running) {
        if (Date.now() > end) {
          stop.abort();
          return "each call has a server of its own";
        }
      }
      stop.abort();
      expect((await within(call, 10_000)) === "cancelled", "the cancelled call goes on");
      const last = Date.now() + 3000;
      let heard = false;
      while (!heard && Date.now() < last) heard = (await slowCalls()).cancelled > before.cancelled;
      await real();
      return heard ? "" : "the client does not tell the server";
    },
    progress: async () => {
      const heard = await (it.progress ?? none)("count", { to: 5 });
      expect(heard.length > 0 && heard.every((n, at) => n === at + 1), heard);
      return heard.length === 5 ? "" : "the client drops a report that arrives with the result";
    },
    resource: async () => {
      const text = await (it.read ?? none)("test://static-text");
      expect(text.toLowerCase().includes("static text"), text);
    },
    prompt: async () => {
      const text = await (it.prompt ?? none)("test_prompt_with_arguments", { arg1: "hello", arg2: "world" });
      expect(text.includes("hello") && text.includes("world"), text);
    },
    elicitation: async () => {
      can("elicitation");
      const said = await it.call("test_elicitation", { message: "Who is there?" });
      expect(!said.error && said.text.includes(USER.email), said);
    },
    sampling: async () => {
      can("sampling");
      const said = await it.call("test_sampling", { prompt: "a question" });
      expect(!said.error && said.text.includes(model("a question")), said);
    },
  };
}

async function again(it) {
  const said = await it.call("add", { a: 20, b: 3 });
  expect(!said.error && said.text.includes("23"), said);
}

/** `connect(target)` gives `tools`, `call`, `close`, and what else the client has; `answers` are the questions of servers
 * that it answers, `elicitation` with USER and `sampling` with `model`. */
export async function main(connect) {
  const { target, without = [] } = plan;
  let it;
  try {
    it = await within(connect(target));
    say("connect", true);
  } catch (error) {
    say("connect", false, why(error));
    process.exit(0);
  }
  for (const [name, body] of Object.entries(checksOf(it))) if (!without.includes(name)) await check(name, body);
  if (typeof target === "string") {
    await restart();
    let fresh = false;
    await within(again(it)).catch(async () => {
      await Promise.resolve(it.close()).catch(() => undefined);
      fresh = true;
    });
    await check("restart", async () => {
      if (!fresh) return "";
      it = await connect(target);
      await again(it);
      return "with a new connection";
    });
  }
  await check("close", () => it.close());
  // A client that keeps its program alive after its end is seen by nobody else.
  process.exit(0);
}
