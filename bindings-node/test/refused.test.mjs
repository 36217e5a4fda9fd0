// Errors that keep what they are, whatever words they get; handlers that are gone; libraries that judge forms.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect, connectMany, RpcError, Server, UnsupportedError } from "tricorn";
import { withClient } from "tricorn/testing";
import { z } from "zod";
import { nativeServer } from "../dist/core.js";

const [MODERN, OLDER] = ["2026-07-28", "2025-11-25"];
const at = (app, options, test) => withClient(app, test, options);
const form = z.object({ name: z.string() });

test("a refused question is known whatever its words", async () => {
  const app = new Server("books", { onError: () => {} });
  for (const how of ["bare", "cause"]) {
    app.tool(how, async (_, ctx) => {
      try {
        return (await ctx.elicit("A table?", form)).action;
      } catch (error) {
        throw new UnsupportedError(`booking: ${error.message}`, how === "cause" ? { cause: error } : undefined);
      }
    });
  }
  app.tool("second", async (_, ctx) => {
    await ctx.elicit("A table?", form).catch(() => {});
    return ctx.ask("roots/list");
  });
  await at(app, { revision: MODERN }, async (client) => {
    for (const [tool, missing] of [
      ["bare", "elicitation"],
      ["cause", "elicitation"],
      ["second", "roots"],
    ]) {
      const error = await client.callTool(tool).catch((error) => error);
      assert.ok(error instanceof RpcError, tool);
      assert.equal(error.code, -32021);
      assert.deepEqual(Object.keys(error.data.requiredCapabilities), [missing], tool);
    }
  });
  await at(app, { revision: OLDER }, async (client) => {
    const result = await client.callTool("bare");
    assert.ok(result.isError && result.text.startsWith("booking: "), result.text);
  });
});

test("a handler that is gone is answered as what there is not", async () => {
  const app = new Server("gone");
  app.tool("here", () => "");
  const engine = nativeServer(app);
  // Nobody has this number, as of a handler that was removed while its call was on the way.
  const nobody = 0x7fffffff;
  engine.add("tool", '{"name":"t","inputSchema":{"type":"object"}}', "", nobody);
  engine.add("prompt", '{"name":"p"}', "", nobody);
  engine.add("resource", '{"name":"r","uri":"memo://r"}', "", nobody);
  await at(app, { revision: OLDER }, async (client) => {
    for (const [ask, code, words] of [
      [() => client.callTool("t"), -32602, 'unknown tool "t"'],
      [() => client.getPrompt("p"), -32602, 'unknown prompt "p"'],
      [() => client.readResource("memo://r"), -32002, "no resource"],
    ]) {
      await assert.rejects(ask, (error) => error.code === code && error.message.includes(words));
    }
  });
});

test("the library judges the answer to its form, in its own words", async () => {
  const seen = [];
  const app = new Server("books", { onError: () => {} });
  const party = z.object({ size: z.number().refine((size) => size % 2 === 0, "a party is of even size") });
  app.tool("book", async (_, ctx) => {
    try {
      return String((await ctx.elicit("A table?", party)).content?.size);
    } catch (error) {
      seen.push(error.message);
      throw error;
    }
  });
  for (const revision of [MODERN, OLDER]) {
    let size = 4;
    const elicitation = () => ({ size });
    await at(app, { revision, elicitation }, async (client) => {
      assert.equal((await client.callTool("book")).text, "4");
      size = 3;
      assert.ok((await client.callTool("book")).isError);
      assert.match(seen.at(-1), /a party is of even size/);
    });
  }
});

test("variables fill a configuration, and a program gets as much of the environment as it is given", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tricorn-refused-"));
  t.after(() => rm(folder, { recursive: true }));
  process.env.SECRET_OF_TEST = "s";
  t.after(() => delete process.env.SECRET_OF_TEST);
  const program = `
    import { Server } from ${JSON.stringify(import.meta.resolve("tricorn"))};
    const { OWN, SECRET_OF_TEST = "" } = process.env;
    await new Server("env").tool("seen", () => [OWN, SECRET_OF_TEST, process.argv.at(-1)].join()).run();
  `;
  const args = ["--input-type=module", "-e", program, "$" + "{input:key}"];
  const entry = { command: process.execPath, args, env: { OWN: "1" } };
  const path = join(folder, "mcp.json");
  await writeFile(path, JSON.stringify({ servers: { a: entry } }));
  const variables = { "input:key": "k" };
  const client = await connect(path, { variables, inheritEnv: false });
  assert.equal((await client.callTool("seen")).text, "1,,k");
  await client.close();
  for (const root of ["mcpServers", "servers", "context_servers"]) {
    const group = await connectMany({ [root]: { a: entry } }, { variables, inheritEnv: ["SECRET_OF_TEST"] });
    assert.equal(group.failures.size, 0, root);
    assert.equal((await group.callTool("seen")).text, "1,s,k");
    await group.close();
  }
  const group = await connectMany(path);
  assert.match(group.failures.get("a").message, /input:key/);
  await group.close();
});
