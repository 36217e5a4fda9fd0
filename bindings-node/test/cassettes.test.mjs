// Cassettes: recorded once, played ever after, with equal results and without secrets.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect, MisuseError, Server } from "tricorn";
import { withCassette } from "tricorn/testing";

const cassettes = fileURLToPath(new URL("../../tests/cassettes/", import.meta.url));

const calculator = () =>
  new Server("calculator").tool("add", ({ a, b }) => a + b).tool("login", ({ password }) => `welcome with ${password}`);

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "tricorn-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

test("a recorded server is played", async (t) => {
  const path = await folder(t);
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const file = join(path, `${revision}.jsonl`);
    await withCassette(
      file,
      calculator(),
      async (client) => {
        assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
        await client.callTool("login", { password: "hunter2-hunter2" });
      },
      { revision },
    );
    assert.ok(!(await readFile(file, "utf8")).includes("hunter2"));
    await withCassette(
      file,
      new Server("nothing"),
      async (client) => {
        assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
        assert.match((await client.callTool("login", { password: "another-1" })).text, /^welcome with <secret-/);
      },
      { revision },
    );
    await withCassette(
      file,
      new Server("nothing"),
      async (client) => {
        assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
        await assert.rejects(client.callTool("add", { a: 1, b: 2 }), /recorded 1 times/);
      },
      { revision, mode: "replay", strict: true },
    );
  }
});

test("a test that fails leaves no cassette", async (t) => {
  const path = await folder(t);
  const failing = () => {
    throw new RangeError("failed");
  };
  await assert.rejects(withCassette(join(path, "a.jsonl"), calculator(), failing), RangeError);
  assert.deepEqual(await readdir(path), []);
});

for (const era of ["legacy", "modern"]) {
  test(`the fixture server is played, ${era}`, async () => {
    const client = await connect(`replay:${cassettes}${era}.jsonl`);
    assert.equal((await client.callTool("add", { a: 1, b: 2 })).text, "3");
    await client.close();
  });
}

test("a missing cassette is said", async () => {
  await assert.rejects(connect("replay:nowhere.jsonl"), (error) => {
    assert.ok(error instanceof MisuseError);
    assert.match(error.message, /there is no such file; tricorn record TARGET -o nowhere\.jsonl/);
    return true;
  });
});
