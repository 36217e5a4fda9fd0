// Our client in Node against a server of others: the calls of its entry.
import { connect } from "tricorn";
import { check, expect, plan, restart, say, why } from "./checks.mjs";

const { target, tools, calls, resources, prompts, without } = plan;

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

let client;
try {
  client = await connect(Array.isArray(target) ? { command: target[0], args: target.slice(1) } : target);
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
  if (resources) await check("resources", async () => `${(await client.listResources()).length} resources`);
  if (prompts) await check("prompts", async () => `${(await client.listPrompts()).length} prompts`);
  const first = calls.find(({ error }) => !error);
  if (typeof target === "string" && first && !without.includes("restart")) {
    await restart();
    await check("restart", () => call(client, first));
  }
  await client.close();
  say("close", true);
} catch (error) {
  say(client ? "close" : "connect", false, why(error));
}
process.exit(0);
