// Programs under test: child processes with bounded waits, killed at the end of the test.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Server } from "tricorn";
import { withClient } from "tricorn/testing";

/** Nothing here takes longer unless it hangs. */
export const LIMIT = 20_000;

/** Rejects instead of waiting for ever. */
export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not happen within ${LIMIT} ms`)), LIMIT);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

/** The newest revision with sessions: servers may ask their clients there. */
export const legacy = { revision: "2025-11-25" };

/** Runs `test` with a client of each era. */
export async function both(server, test, options = {}) {
  for (const revision of ["2026-07-28", legacy.revision]) await withClient(server, test, { ...options, revision });
}

/** Returns the outcome of `ask` in a tool, seen from outside. */
export async function asking(ask, options) {
  let outcome;
  const app = new Server("asking").tool("ask", async (_, ctx) => {
    outcome = await ask(ctx).then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
  });
  await withClient(app, (client) => client.callTool("ask"), { ...legacy, ...options });
  if (outcome.error) throw outcome.error;
  return outcome.value;
}

export function path(name) {
  return fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url));
}

/** Starts `programs/<name>.mjs`. Its lines of stdout are JSON messages, or plain text. */
export function start(t, name, args = [], nodeArgs = []) {
  const child = spawn(process.execPath, [...nodeArgs, path(name), ...args], { stdio: ["pipe", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  const exit = once(child, "close").then(([code, signal]) => ({ code, signal }));
  const lines = [];
  const waiting = [];
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    for (const check of [...waiting]) check();
  });
  let stderr = "";
  const heard = [];
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
    for (const check of [...heard]) check();
  });
  // A program that ends while we still write is a case under test, not an accident.
  child.stdin.on("error", () => {});
  const until = (list, found, what) =>
    within(
      new Promise((resolve) => {
        const check = () => {
          const value = found();
          if (value === undefined) return;
          list.splice(list.indexOf(check), 1);
          resolve(value);
        };
        list.push(check);
        check();
      }),
      what,
    );
  return {
    child,
    lines,
    get stderr() {
      return stderr;
    },
    exit: () => within(exit, `the end of ${name}`),
    send: (...messages) => child.stdin.write(messages.map((message) => `${JSON.stringify(message)}\n`).join("")),
    /** The answer to request `id`. */
    answer: (id) => until(waiting, () => lines.map(parse).find((message) => message?.id === id), `the answer to ${id}`),
    /** A notification of `method`. */
    notification: (method) =>
      until(waiting, () => lines.map(parse).find((message) => message?.method === method), method),
    /** Until this is a line of stdout. */
    prints: (text) => until(waiting, () => (lines.includes(text) ? true : undefined), `"${text}" on stdout`),
    /** Until stderr contains `text`. */
    says: (text) => until(heard, () => (stderr.includes(text) ? true : undefined), `"${text}" on stderr`),
  };
}

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

export const initialize = (revision = "2025-11-25") => [
  {
    jsonrpc: "2.0",
    id: "init",
    method: "initialize",
    params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: "test", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
];

export const call = (id, name, args = {}, extra = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, ...extra },
});
