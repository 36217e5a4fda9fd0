// Our client in Node against a server of others: the calls of its entry.
import { connect, TricornError } from "tricorn";
import { check, expect, kill, lastText, model, plan, restart, say, why } from "./checks.mjs";

const { target, tools, calls, resources, prompts, without, user } = plan;
/** Milliseconds in which a call to a server that is gone has to end. */
const SOON = 10_000;

const opened = () =>
  connect(Array.isArray(target) ? { command: target[0], args: target.slice(1) } : target, {
    elicitation: () => user,
    sampling: ({ messages }) => model(lastText(messages)),
  });

async function call(client, { name, arguments: args = {}, has = "", error = false }) {
  let said;
  try {
    const { isError, content, structured } = await client.callTool(name, args);
    said = { isError, text: JSON.stringify([content, structured]) };
  } catch (problem) {
    if (!error) throw problem;
    said = { isError: true, text: problem.message };
  }
  const plain = said.text.includes(has) || said.text.includes(JSON.stringify(has).slice(1, -1));
  expect(said.isError === error && plain, said);
}

async function cancel(client, what) {
  const stop = new AbortController();
  const given = client.callTool(what.name, what.arguments, { signal: stop.signal }).catch(() => undefined);
  setImmediate(() => stop.abort());
  await given;
  await call(client, what);
}

async function progress(client, what) {
  const heard = [];
  await client.callTool(what.name, what.arguments, { onProgress: (report) => heard.push(report.progress) });
  expect(heard.length > 0 && heard.every((n, at) => at === 0 || n > heard[at - 1]), heard);
  return `${heard.length} reports`;
}

/** Between two calls the server is killed: it is started again, or the client says at once that it is gone. */
async function killed(client, what) {
  await kill();
  let gone = "";
  for (let n = 0; n < 2; n += 1) {
    const start = Date.now();
    try {
      await call(client, what);
      return `started again ${gone}`;
    } catch (error) {
      if (!(error instanceof TricornError) || Date.now() - start > SOON) throw error;
      gone = why(error);
    }
  }
  const fresh = await opened();
  await call(fresh, what);
  await fresh.close();
  return `a new connection: ${gone}`;
}

let client;
try {
  client = await opened();
  say("connect", true);
  await check("list", async () => {
    const names = (await client.listTools()).map((tool) => tool.name);
    const missing = tools.filter((name) => !names.includes(name));
    expect(names.length > 0 && missing.length === 0, { missing, names });
    return `${names.length} tools`;
  });
  for (const what of calls) await check((what.error ? "error " : "call ") + what.name, () => call(client, what));
  for (const what of calls.filter(({ many }) => many)) {
    await check("50 at once", () => Promise.all(Array.from({ length: 50 }, () => call(client, what))).then(() => ""));
    await check("cancel", () => cancel(client, what));
  }
  for (const what of calls.filter((call) => call.progress)) await check("progress", () => progress(client, what));
  if (resources) {
    await check("resources", async () => {
      const listed = await client.listResources();
      for (const { uri } of listed.slice(0, 1)) expect((await client.readResource(uri)).contents.length > 0, uri);
      return `${listed.length} resources`;
    });
  }
  if (prompts) {
    await check("prompts", async () => {
      const listed = await client.listPrompts();
      const whole = listed.filter((prompt) => !prompt.arguments?.some(({ required }) => required));
      for (const { name } of whole.slice(0, 1)) expect((await client.getPrompt(name)).messages.length > 0, name);
      return `${listed.length} prompts`;
    });
  }
  const first = calls.find(({ error }) => !error);
  if (typeof target === "string" && first && !without.includes("restart")) {
    await restart();
    await check("restart", () => call(client, first));
  }
  if (Array.isArray(target) && first && !without.includes("killed")) {
    await check("killed", () => killed(client, calls.find(({ many }) => many) ?? first));
  }
  await client.close();
  say("close", true);
} catch (error) {
  say(client ? "close" : "connect", false, why(error));
}
process.exit(0);
