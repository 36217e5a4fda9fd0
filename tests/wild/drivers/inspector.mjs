// The Inspector on the command line: a process for each question.
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { main, textOf } from "./checks.mjs";

const run = promisify(execFile);
const program = join(dirname(fileURLToPath(import.meta.url)), "node_modules/.bin/mcp-inspector");

await main(async (target) => {
  const there = typeof target === "string" ? [target, "--transport", "http"] : target;
  const ask = async (...words) => {
    const { stdout } = await run(program, ["--cli", ...there, "--method", ...words], { maxBuffer: 1 << 25 });
    return JSON.parse(stdout);
  };
  const pairs = (flag, args) => [
    flag,
    ...Object.entries(args).map(
      ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    ),
  ];
  await ask("tools/list");
  return {
    tools: async () => (await ask("tools/list")).tools.map((tool) => tool.name),
    call: async (name, args) => {
      const result = await ask("tools/call", "--tool-name", name, ...pairs("--tool-arg", args));
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    read: async (uri) => textOf((await ask("resources/read", "--uri", uri)).contents),
    prompt: async (name, args) =>
      textOf(
        (await ask("prompts/get", "--prompt-name", name, ...pairs("--prompt-args", args))).messages.map(
          (m) => m.content,
        ),
      ),
    close: () => {},
  };
});
