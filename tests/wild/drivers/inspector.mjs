// The Inspector on the command line: a process for each question.
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { main, textOf } from "./checks.mjs";

const run = promisify(execFile);
const program = join(dirname(fileURLToPath(import.meta.url)), "node_modules/.bin/mcp-inspector");
const AUTO = ["--protocol-era", "auto"];

await main(async (target) => {
  const there = typeof target === "string" ? [target, "--transport", "http"] : target;
  const ask = async (...words) => {
    const command = [program, "--cli", ...there, "--format", "json", "--quiet", "--method", ...words];
    let said;
    try {
      said = await run(process.execPath, command, { maxBuffer: 1 << 25 });
    } catch (error) {
      // A tool's error is printed, too, and the program ends with a code of its own.
      if (!error.stdout) throw error;
      said = error;
    }
    const answer = JSON.parse(said.stdout);
    return answer.result ?? answer;
  };
  const pairs = (flag, args) => [
    flag,
    ...Object.entries(args).map(
      ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    ),
  ];
  // Without being told, it speaks as the revisions before 2026 do.
  await ask("tools/list");
  return {
    tools: async () => (await ask("tools/list", ...AUTO)).tools.map((tool) => tool.name),
    call: async (name, args) => {
      const given = Object.keys(args).length > 0 ? pairs("--tool-arg", args) : [];
      const result = await ask("tools/call", ...AUTO, "--tool-name", name, ...given);
      return { error: Boolean(result.isError), text: textOf(result.content) };
    },
    read: async (uri) => textOf((await ask("resources/read", ...AUTO, "--uri", uri)).contents),
    prompt: async (name, args) =>
      textOf(
        (await ask("prompts/get", ...AUTO, "--prompt-name", name, ...pairs("--prompt-args", args))).messages.map(
          (m) => m.content,
        ),
      ),
    close: () => {},
  };
});
