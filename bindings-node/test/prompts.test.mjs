// Prompts and completion as users write them, seen by a client in the same process, in both eras.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assistant, image, MisuseError, RpcError, resource, Server, ToolError, text, user } from "tricorn";
import { bridgeMetrics, withClient } from "tricorn/testing";
import { z } from "zod";
import { both, deferred, within } from "./program.mjs";

const said = (value) => ({ type: "text", text: value });

test("what functions return becomes messages", async () => {
  const app = new Server("messages")
    .prompt("text", () => "hello")
    .prompt("message", { description: "One" }, () => assistant("hi"))
    .prompt("several", async () => [user("a"), assistant(text("b")), "c", image("AAAA", "image/png")])
    .prompt("block", () => resource("test://t", "abc", "text/plain"))
    .prompt("plain", () => ({ role: "assistant", content: "as text" }))
    .prompt("whole", () => ({ description: "W", messages: [user("w")], _meta: { "com.example/a": 1 } }))
    .prompt("none", () => []);
  await both(app, async (client) => {
    const get = async (name) => (await client.getPrompt(name)).messages;
    assert.deepEqual(await get("text"), [{ role: "user", content: said("hello") }]);
    assert.deepEqual(await get("message"), [{ role: "assistant", content: said("hi") }]);
    assert.equal((await client.getPrompt("message")).description, "One");
    assert.deepEqual(await get("several"), [
      { role: "user", content: said("a") },
      { role: "assistant", content: said("b") },
      { role: "user", content: said("c") },
      { role: "user", content: { type: "image", data: "AAAA", mimeType: "image/png" } },
    ]);
    assert.deepEqual(await get("block"), [
      {
        role: "user",
        content: { type: "resource", resource: { uri: "test://t", mimeType: "text/plain", text: "abc" } },
      },
    ]);
    assert.deepEqual(await get("plain"), [{ role: "assistant", content: said("as text") }]);
    const whole = await client.getPrompt("whole");
    assert.deepEqual([whole.description, whole.messages], ["W", [{ role: "user", content: said("w") }]]);
    assert.equal(whole._meta["com.example/a"], 1);
    assert.deepEqual(await get("none"), []);
  });
});

test("messages that are none are refused, and never sent", async () => {
  assert.throws(() => user(5), /^MisuseError: user: expected text, or a content block, got a number/);
  assert.throws(() => assistant(undefined), /^MisuseError: assistant: expected text, or a content block/);
  assert.throws(() => user(["a", {}]), /^MisuseError: user\[1\]: expected a content block, such as text/);
  assert.deepEqual(user(["a", text("b")]).content, [said("a"), text("b")]);
  const heard = [];
  const wrong = {
    role: [{ role: "system", content: "a" }, /^message\.role: expected "user" or "assistant", got "system": give user/],
    content: [{ role: "user" }, /^message\.content: expected text, or a content block, got undefined/],
    block: [{ role: "user", content: { type: "text" } }, /^message\.content\.text: expected text, got undefined/],
    listed: [["a", 5], /^messages\[1\]: expected text, or a content block, got a number/],
    whole: [{ messages: [user("a"), { role: "user", content: [5] }] }, /^messages\[1\]\.content\[0\]: expected text/],
    image: [{ type: "image", data: "a.png", mimeType: "image/png" }, /^message\.data: expected bytes, or base64 text/],
  };
  const app = new Server("messages", { onError: (error) => heard.push(error) });
  for (const [name, [value]] of Object.entries(wrong)) app.prompt(name, () => value);
  app.prompt("bytes", () => ({ role: "user", content: { type: "image", data: Uint8Array.of(1), mimeType: "a/b" } }));
  app.setSource("prompt", { get: () => ({ role: "system", content: "a" }) });
  await withClient(app, async (client) => {
    for (const [name, [, message]] of Object.entries(wrong)) {
      await assert.rejects(client.getPrompt(name), { code: -32603, message: `prompt "${name}" failed: MisuseError` });
      assert.match(heard.pop().message, message);
    }
    await assert.rejects(client.getPrompt("of the source"), { code: -32603 });
    assert.match(heard.pop().message, /^message\.role/);
    const { messages } = await client.getPrompt("bytes");
    assert.deepEqual(messages[0].content, { type: "image", data: "AQ==", mimeType: "a/b" });
  });
});

test("arguments are listed, converted and checked", async () => {
  const input = z.object({
    name: z.string().describe("Who"),
    times: z.int().default(1),
    loud: z.boolean().optional(),
    even: z
      .int()
      .refine((n) => n % 2 === 0, "must be even")
      .optional(),
  });
  const app = new Server("arguments")
    .prompt("greet", { title: "Greet", input }, (args) => JSON.stringify(args))
    .prompt("listed", { arguments: [{ name: "a", description: "A", required: true }] }, ({ a }) => a);
  await both(app, async (client) => {
    const [greet, listed] = await client.listPrompts();
    assert.equal(greet.title, "Greet");
    assert.deepEqual(greet.arguments, [
      { name: "name", description: "Who", required: true },
      { name: "times", required: false },
      { name: "loud", required: false },
      { name: "even", required: false },
    ]);
    assert.deepEqual(listed.arguments, [{ name: "a", description: "A", required: true }]);
    const get = async (name, args) => (await client.getPrompt(name, args)).messages[0].content.text;
    assert.equal(await get("greet", { name: "7" }), '{"name":"7","times":1}');
    // The protocol has text only: what is none is written as JSON.
    assert.equal(await get("greet", { name: "A", times: 2, loud: true }), '{"name":"A","times":2,"loud":true}');
    assert.equal(await get("greet", { name: "A", times: "2", loud: undefined }), '{"name":"A","times":2}');
    assert.equal(await get("greet", { name: "A", times: null }), '{"name":"A","times":1}');
    assert.equal(await get("listed", { a: "x" }), "x");
    assert.equal(await get("listed", { a: new Date(0) }), "1970-01-01T00:00:00.000Z");
    assert.equal(await get("listed", { a: new URL("https://example.com/") }), "https://example.com/");
    assert.equal(await get("listed", { a: ["x"] }), '["x"]');
    const wrong = (args, message, name = "greet") =>
      assert.rejects(client.getPrompt(name, args), (error) => {
        assert.ok(error instanceof RpcError);
        assert.deepEqual([error.code, error.message], [-32602, message]);
        return true;
      });
    await wrong({}, 'argument "name": missing (required)');
    await wrong({ name: "A", times: "x" }, 'argument "times": Invalid input: expected number, received string');
    await wrong({ name: "A", even: "3" }, 'argument "even": must be even');
    await wrong({}, 'argument "a": missing (required)', "listed");
    await wrong({}, 'unknown prompt "unknown"', "unknown");
  });
});

test("failures are JSON-RPC errors", async () => {
  const seen = [];
  const app = new Server("failures", { onError: (error, name) => seen.push(`${name}: ${error.message}`) })
    .prompt("secret", () => {
      throw new TypeError("secret");
    })
    .prompt("said", async () => {
      throw new ToolError("no model today");
    })
    .prompt("code", () => {
      throw new RpcError(4242, "own");
    })
    .prompt("number", () => 7);
  await both(app, async (client) => {
    const failed = (name) => client.getPrompt(name).then(assert.fail, ({ code, message }) => [code, message]);
    assert.deepEqual(await failed("secret"), [-32603, 'prompt "secret" failed: TypeError']);
    assert.deepEqual(await failed("said"), [-32603, "no model today"]);
    assert.deepEqual(await failed("code"), [4242, "own"]);
    assert.match((await failed("number"))[1], /^prompt "number" failed: expected text, a message/);
  });
  assert.deepEqual(seen, ["secret: secret", "secret: secret"]);
});

test("what is wrong about a prompt is said when it is added", () => {
  const app = new Server("wrong").prompt("taken", () => "");
  const misuse = (add, message) =>
    assert.throws(add, (error) => error instanceof MisuseError && message.test(error.message));
  misuse(() => app.prompt("taken", () => ""), /already registered/);
  misuse(() => app.prompt("none", {}), /the function/);
  misuse(() => app.prompt("date", { input: z.object({ d: z.date() }) }, () => ""), /prompt "date" input: /);
  const complete = { b: () => [] };
  misuse(() => app.prompt("c", { input: z.object({ a: z.string() }), complete }, () => ""), /"b" is of no argument/);
});

test("completion: of prompts, of templates, of choices, and of the rest", async () => {
  const seen = [];
  const cities = ["Aachen", "Amsterdam", "Berlin"];
  const app = new Server("completion")
    .prompt(
      "trip",
      {
        input: z.object({ city: z.string(), street: z.string(), by: z.enum(["air", "sea"]), other: z.string() }),
        complete: {
          city: (value, args, ctx) => {
            seen.push([value, args, ctx.request.method]);
            return cities.filter((city) => city.startsWith(value));
          },
          street: async (value, { city }) => ({ values: [`${value}, ${city}`], total: 120 }),
        },
      },
      () => "",
    )
    .resource("maps://{city}", { complete: { city: () => Array.from({ length: 150 }, (_, n) => `c${n}`) } }, () => "")
    .onComplete(({ ref, argument }) => [`${ref.name ?? ref.uri} ${argument.name} ${argument.value}`]);
  const trip = { type: "ref/prompt", name: "trip" };
  await both(app, async (client) => {
    assert.ok(client.capabilities.completions);
    assert.deepEqual(await client.complete(trip, "city", "A"), {
      values: ["Aachen", "Amsterdam"],
      total: 2,
      hasMore: false,
    });
    assert.deepEqual(await client.complete(trip, "street", "Main", { city: "Berlin" }), {
      values: ["Main, Berlin"],
      total: 120,
      hasMore: true,
    });
    assert.deepEqual((await client.complete(trip, "other", "o")).values, ["trip other o"]);
    const many = await client.complete({ type: "ref/resource", uri: "maps://{city}" }, "city", "");
    assert.deepEqual([many.values.length, many.total, many.hasMore], [100, 150, true]);
    await assert.rejects(client.complete(trip, "unknown", ""), { code: -32602 });
  });
  assert.deepEqual(seen[0], ["A", {}, "completion/complete"]);
  const plain = new Server("choices", { onError: () => {} }).prompt(
    "trip",
    {
      input: z.object({ by: z.enum(["air", "sea"]), bad: z.string() }),
      complete: {
        bad: () => {
          throw new Error("secret");
        },
      },
    },
    () => "",
  );
  await both(plain, async (client) => {
    assert.deepEqual((await client.complete(trip, "by", "s")).values, ["sea"]);
    await assert.rejects(client.complete(trip, "bad", ""), {
      code: -32603,
      message: 'the completion of "bad" failed: Error',
    });
  });
});

test("a prompt and a completion are cancelled where they wait", async () => {
  const waiting = (_args, ctx) =>
    new Promise((_resolve, reject) => {
      started.resolve();
      ctx.signal.addEventListener("abort", () => {
        cancelled.resolve();
        reject(ctx.signal.reason);
      });
    });
  let started;
  let cancelled;
  const complete = { a: (_value, args, ctx) => waiting(args, ctx) };
  const app = new Server("slow").prompt("slow", { input: z.object({ a: z.string() }), complete }, waiting);
  await withClient(app, async (client) => {
    for (const start of [
      (options) => client.getPrompt("slow", { a: "" }, options),
      (options) => client.complete({ type: "ref/prompt", name: "slow" }, "a", "", {}, options),
    ]) {
      started = deferred();
      cancelled = deferred();
      const controller = new AbortController();
      const call = start({ signal: controller.signal });
      await within(started.promise, "the start");
      controller.abort();
      await assert.rejects(call, { name: "AbortError" });
      await within(cancelled.promise, "the cancel");
    }
  });
  assert.deepEqual(bridgeMetrics(), { queued: 0, calls: 0, ops: 0, dropped: 0 });
});

test("completion from a list", async () => {
  const input = z.object({ city: z.string() });
  const app = new Server("list").prompt("travel", { input, complete: { city: ["Bonn", "Berlin", "Oslo"] } }, () => "");
  await both(app, async (client) => {
    const { values } = await client.complete({ type: "ref/prompt", name: "travel" }, "city", "b");
    assert.deepEqual(values, ["Bonn", "Berlin"]);
  });
  for (const city of [["Bonn", 1], "Bonn", 5]) {
    assert.throws(() => new Server("x").prompt("p", { complete: { city } }, () => ""), MisuseError);
  }
});
