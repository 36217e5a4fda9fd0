// `tricorn inspect` in a browser without a screen. `TRICORN_COMMAND` is the command, `TRICORN_EVERYTHING` the fixture server;
// pictures go to `INSPECT_PICTURES`, if that is a folder.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Browser, chromium } from "./browser.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const built = (name) =>
  [here(`../../target/release/${name}`), here(`../../target/debug/${name}`)].find(existsSync) ?? name;
const command = (process.env.TRICORN_COMMAND ?? built("tricorn")).split(" ");
const everything = process.env.TRICORN_EVERYTHING ?? built("example-everything");
const program = chromium();
const pictures = process.env.INSPECT_PICTURES;

/** The command while it runs. */
class Command {
  said = [];

  static async start(...words) {
    const own = new Command();
    const [name, ...first] = command;
    own.child = spawn(name, [...first, "inspect", "--no-open", ...words], { stdio: ["ignore", "pipe", "pipe"] });
    own.lines = createInterface({ input: own.child.stderr }).on("line", (line) => own.said.push(line));
    own.link = await new Promise((resolve, reject) => {
      createInterface({ input: own.child.stdout }).once("line", resolve);
      own.child.once("exit", (status) => reject(new Error(`it ended with ${status}: ${own.said.join("\n")}`)));
    });
    own.url = new URL(own.link);
    return own;
  }

  /** Waits until it has said this on standard error. */
  async says(text) {
    while (!this.said.some((line) => line.includes(text)))
      await once(this.lines, "line", { signal: AbortSignal.timeout(10_000) });
  }

  end() {
    const ended = new Promise((resolve) => {
      this.child.once("exit", (status) => resolve(status));
    });
    this.child.kill("SIGINT");
    return ended;
  }
}

/** One request, without a browser's help. */
function ask(url, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      });
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    request.on("error", reject).end(body);
  });
}

const byHand = (...more) => ["--", process.execPath, here("server.mjs"), ...more];

/** Opens the page and waits until it is connected. */
async function opened(browser, inspect, look) {
  const page = await browser.page(look);
  await page.open(inspect.link);
  await page.see("#status", "connected");
  return page;
}

async function choose(page, name) {
  await page.click(".entries button", name);
}

const result = (page, text) => page.see(".detail .result", text);

async function picture(page, name) {
  if (pictures) writeFileSync(join(pictures, `${name}.png`), await page.picture());
}

describe("inspect", { skip: program ? false : "no Chromium", concurrency: false }, () => {
  let browser;
  before(() => {
    browser = new Browser(program);
  });
  after(() => browser.close());

  /** A test with the command and a page. */
  const shown = (name, words, work, look) =>
    test(name, { timeout: 120_000 }, async () => {
      const inspect = await Command.start(...words);
      try {
        const page = await opened(browser, inspect, look);
        await work(page, inspect);
        const foreign = page.asked.filter(
          (url) => !url.startsWith(inspect.url.origin) && !/^(data|blob|about):/.test(url),
        );
        assert.deepEqual(foreign, [], "it asks nobody else");
        assert.deepEqual(page.problems, []);
        await page.close();
      } finally {
        assert.equal(await inspect.end(), 130);
      }
    });

  test("only the browser that opened the link is let in", async () => {
    const inspect = await Command.start(...byHand());
    try {
      const { origin, pathname, host, port } = inspect.url;
      const base = origin + pathname;
      assert.equal(host, `127.0.0.1:${port}`);
      assert.equal((await ask(`${origin}/`)).status, 404);
      assert.equal((await ask(base)).status, 403);
      assert.equal((await ask(`${base}?token=wrong`)).status, 403);
      assert.equal((await ask(inspect.link, { headers: { host: `localhost:${port}` } })).status, 403, "another name");
      const first = await ask(inspect.link);
      assert.equal(first.status, 200);
      const [cookie] = first.headers["set-cookie"];
      assert.match(cookie, new RegExp(`; Path=${pathname}; HttpOnly; SameSite=Strict$`));
      assert.equal((await ask(inspect.link)).status, 403, "the token is used up");
      await inspect.says("token=");
      const headers = { cookie: cookie.split(";")[0] };
      const page = await ask(base, { headers });
      assert.equal(page.status, 200);
      assert.match(page.headers["content-security-policy"], /^default-src 'none'; script-src 'self'; /);
      assert.equal(page.headers["x-content-type-options"], "nosniff");
      assert.equal((await ask(base, { headers: { ...headers, host: "evil.example" } })).status, 403);
      assert.equal((await ask(base, { headers: { ...headers, "sec-fetch-site": "cross-site" } })).status, 403);
      const post = (more, body = "{}") =>
        ask(`${base}clear`, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json", ...more },
          body,
        });
      assert.equal((await post({})).status, 403, "without an origin");
      assert.equal((await post({ origin: "null" })).status, 403);
      assert.equal((await post({ origin: `http://localhost:${port}` })).status, 403);
      assert.equal((await post({ origin, "sec-fetch-site": "same-site" })).status, 403);
      assert.equal((await post({ origin, "content-type": "text/plain" })).status, 415);
      assert.equal((await post({ origin, cookie: "tricorn-inspect=x" })).status, 403);
      assert.equal((await post({ origin })).status, 202);
      const wrong = await ask(`${base}start`, {
        method: "POST",
        headers: { ...headers, origin, "content-type": "application/json" },
        body: "{",
      });
      assert.equal(wrong.status, 400);
    } finally {
      assert.equal(await inspect.end(), 130);
    }
  });

  shown("a tool is called with a form, and each field says what is wrong", byHand(), async (page) => {
    await choose(page, "echo");
    await page.type("word", "x");
    await page.type("count", "11");
    await page.type("share", "half");
    await page.click(".run");
    await page.see(".problem", "expected at least 2 characters");
    await page.see(".problem", "expected an integer, 1 to 10");
    await page.see(".problem", "expected a number");
    assert.equal(await page.run(() => document.activeElement.value), "x", "the first one has the focus");
    assert.equal(await page.run(() => document.activeElement.getAttribute("aria-invalid")), "true");
    await page.type("word", "owl");
    await page.type("count", "7");
    await page.type("share", "0.50");
    await page.type("language", "1");
    await page.click("fieldset button", "Add");
    await page.type("tags 1", "a");
    await page.run(() =>
      [...document.querySelectorAll("fieldset label.choice")]
        .find((one) => one.textContent.includes("m"))
        .querySelector("input")
        .click(),
    );
    await page.type("city", "Graz");
    await page.type("anything", '{"deep": [1, 12345678901234567890]}');
    await page.click(".run");
    await result(page, "answered after");
    const sent = await page.until(
      "the request",
      () => [...document.querySelectorAll('#log [data-kind="request"][data-method="tools/call"]')].length === 1,
    );
    assert.ok(sent);
    await page.click('#log [data-kind="request"][data-method="tools/call"] .head');
    const text = await page.text("#log .record .json");
    for (const part of [
      '"word": "owl"',
      '"count": 7',
      '"share": 0.50',
      '"language": "de"',
      '"city": "Graz"',
      "12345678901234567890",
      '"tags": [\n',
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.ok(!text.includes('"when"') && !text.includes('"either"'), "what is empty is left out");
    await page.click(".form ~ button", "Edit as JSON");
    assert.match(await page.run(() => document.querySelector(".form textarea").value), /"owl"/);
    await picture(page, "call");
    await choose(page, "fail");
    await page.click(".run");
    await result(page, "it did not work");
  });

  shown("everything works by keyboard", byHand(), async (page) => {
    await page.see(".entries button", "echo");
    await page.press("?");
    await page.see("dialog", "Ctrl+Enter");
    await page.press("Escape");
    await page.press("/");
    await page.write("echo");
    await page.until("one entry", () => document.querySelectorAll(".entries button").length === 1);
    await page.press("ArrowDown", "Enter");
    await page.see(".detail h3", "Echo");
    // The first field is behind the list.
    await page.until("the field", () => {
      const order = [
        ...document.querySelectorAll("#panel button, #panel input, #panel textarea, #panel select"),
      ].filter((one) => one.checkVisibility());
      return order.indexOf(document.activeElement) + 1 === order.findIndex((one) => one.closest(".detail"));
    });
    await page.press("Tab");
    await page.write("owl");
    await page.press("Ctrl+Enter");
    await result(page, "answered");
    await page.run(() => document.activeElement.blur());
    await page.press("5");
    await page.see("#tab-server[aria-selected=true]");
    await page.press("ArrowRight");
    await page.see("#tab-messages[aria-selected=true]");
    await page.press("1");
    assert.equal(await page.run(() => document.activeElement.id), "tab-tools");
    const unnamed = await page.run(() => {
      const named = (one) =>
        one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length || one.title;
      return [...document.querySelectorAll("button, input, select, textarea, iframe, a")]
        .filter((one) => !named(one))
        .map((one) => one.outerHTML);
    });
    assert.deepEqual(unnamed, [], "everything has a name");
  });

  shown("progress is shown, and a call is cancelled at the server", byHand(), async (page) => {
    await choose(page, "slow");
    await page.click(".run");
    await page.see(".runner", "3 of 10 step 3");
    assert.equal(await page.run(() => document.querySelector("progress").value), 3);
    await page.see('#log [data-method="notifications/progress"]', "3 of 10");
    await page.click(".cancel");
    await result(page, "cancelled");
    await page.see("#log .record", "cancelled");
    await page.see('#log [data-kind="stderr"]', "cancelled");
  });

  shown("forms, pages and questions to a model are answered by the user", byHand(), async (page) => {
    await choose(page, "ask");
    await page.click(".run");
    await page.see("dialog", "Who are you?");
    await picture(page, "question");
    await page.type("name", "A");
    await page.click("dialog button", "Accept");
    await page.see("dialog .problem", "expected at least 2 characters");
    await page.see("dialog .problem", "choose one");
    await page.press("Escape");
    await page.see("#waiting", "1 question waits");
    await page.click("#waiting");
    await page.type("name", "Ada");
    await page.type("colour", "1");
    await page.click("dialog button", "Accept");
    await result(page, '{"action":"accept","content":{"name":"Ada","colour":"g","agrees":true}}');
    await page.click(".run");
    await page.click("dialog button", "Decline");
    await result(page, '"decline"');
    await choose(page, "visit");
    await page.click(".run");
    await page.see("dialog strong", "login.example.com");
    await page.click("dialog button", "Accept");
    await result(page, '{"action":"accept"}');
    await choose(page, "sample");
    await page.click(".run");
    await page.see("dialog", "Be brief.");
    await page.type("Your answer", "An owl");
    await page.click("dialog button", "Answer");
    await result(page, "An owl");
    await page.click(".run");
    await page.click("dialog button", "Refuse");
    await result(page, "refused");
    await page.press("5");
    await page.click("#tab-server");
    await page.type("Roots, one on each line", "/srv/data");
    await page.click("button", "Set the roots");
    await page.see('#log [data-method="notifications/roots/list_changed"]');
    await page.click("#tab-tools");
    await choose(page, "roots");
    await page.click(".run");
    await result(page, "file:///srv/data");
  });

  shown("schemas without an end or a meaning are entered as JSON", byHand(), async (page) => {
    await choose(page, "maze");
    await page.see(".detail", "A schema without an end.⟨U+200B⟩⟨U+E0068⟩⟨U+E0069⟩");
    await page.click(".run");
    await result(page, "called maze");
    await choose(page, "bent");
    await page.see(".detail label", "word");
    await page.click(".run");
    await result(page, "called bent");
  });

  shown("text of a server is text", byHand("--many"), async (page) => {
    await page.see(".side .note", "10014 tools");
    assert.ok((await page.run(() => document.querySelectorAll(".entries button").length)) <= 201);
    await page.type("Filter tools", "hurt");
    await choose(page, "hurt");
    await page.click(".run");
    await result(page, "<script>window.hurt = 1</script>");
    await result(page, "␛[31mred␛]0;title␇ ⟨U+202E⟩esrever⟨U+202C⟩");
    await page.see('#log [data-method="notifications/message"]', "<script>");
    await page.see(".more", "Show more of 1.0 MB");
    await page.run(() => {
      for (const head of document.querySelectorAll("#log .head")) head.click();
    });
    for (const tab of ["resources", "prompts", "server", "tools"]) {
      await page.click(`#tab-${tab}`);
    }
    assert.equal(await page.run(() => typeof window.hurt), "undefined");
    assert.equal(await page.run(() => document.querySelectorAll("#panel script, #log script, img[src=x]").length), 0);
    assert.equal(await page.run(() => document.querySelectorAll('a[href^="javascript"]').length), 0);
    await picture(page, "hostile");
    await page.type("Filter tools", "tool-9999");
    await choose(page, "tool-9999");
    await page.click(".run");
    await result(page, "called tool-9999");
  });

  shown(
    "the messages are searched, bounded and exported",
    ["--env", "TOKEN=canary-env-value", ...byHand()],
    async (page, inspect) => {
      await choose(page, "echo");
      await page.type("word", "sought");
      await page.click(".run");
      await result(page, "answered");
      await page.type("Search messages", "sought tools/call");
      await page.until("two rows", () => document.querySelectorAll("#log .record").length === 2);
      await page.see("#log .record", "result of tools/call");
      await page.type("Search messages", "");
      await page.type("Kind of messages", "output");
      await page.see('#log [data-kind="stderr"]', "ready to serve");
      assert.equal(await page.run(() => document.querySelectorAll('#log [data-kind="request"]').length), 0);
      await page.type("Kind of messages", "all");
      await choose(page, "flood");
      await page.click(".run");
      await result(page, "told");
      await page.see("#log .count", "5000 kept");
      assert.ok((await page.run(() => document.querySelectorAll("#log .record").length)) <= 300);
      await page.type("Search messages", "token is");
      await page.until("one row", () => document.querySelectorAll("#log .record").length === 1);
      await page.see('#log [data-kind="stderr"]', "the token is canary-env-value");
      await page.type("Search messages", "");
      await page.until("300 rows", () => document.querySelectorAll("#log .record").length === 300);
      await page.click("#log button", "Older messages");
      await page.until("more rows", () => document.querySelectorAll("#log .record").length > 300);
      const { cookies } = await page.send("Network.getCookies", { urls: [inspect.url.origin + inspect.url.pathname] });
      const headers = { cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; ") };
      const exported = await ask(`${inspect.url.origin}${inspect.url.pathname}cassette`, { headers });
      assert.equal(exported.status, 200);
      const [head, ...lines] = exported.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      assert.equal(head.cassette, 1);
      assert.ok(lines.length >= 5000 && lines.some(({ msg }) => msg?.params?.data === "message 5999"));
      assert.ok(!exported.text.includes("canary-env-value"));
      await page.click("#clear");
      await page.see("#log .count", "0 kept");
    },
  );

  shown("two pages show the same connection", byHand(), async (page, inspect) => {
    const second = await browser.page({ context: page.context });
    await second.open(inspect.url.origin + inspect.url.pathname);
    await second.see("#status", "connected");
    await choose(page, "ask");
    await page.click(".run");
    await page.see("dialog", "Who are you?");
    await second.see("dialog", "Who are you?");
    await second.click("#tab-server");
    await second.click("dialog button", "Decline");
    await result(page, '"decline"');
    await page.until("no dialog", () => !document.getElementById("dialog").open);
    await choose(page, "slow");
    await page.click(".run");
    await second.see(".plain li", "tools/call slow");
    await second.click(".plain button", "Cancel");
    await result(page, "cancelled");
    assert.deepEqual(second.problems, []);
    await second.close();
  });

  shown("a server that dies is said, and connected again", byHand(), async (page) => {
    await choose(page, "die");
    await page.click(".run");
    await page.see("#status", "the connection has ended");
    await page.see('#log [data-kind="stderr"]', "dying");
    await page.see("#banner", "the connection has ended");
    await page.run(() => document.activeElement.blur());
    await page.press("r");
    await page.see("#status", "connected, stdio");
    await choose(page, "fail");
    await page.click(".run");
    await result(page, "it did not work");
  });

  test("the oldest of too many pages makes room, and a command that has ended is said", async () => {
    const inspect = await Command.start(...byHand());
    const page = await opened(browser, inspect);
    for (let count = 0; count < 4; count++) {
      const more = await browser.page({ context: page.context });
      await more.open(inspect.url.origin + inspect.url.pathname);
      await more.see("#status", "connected");
    }
    await page.see("#banner", "Newer pages");
    await page.click("#banner button", "Use this one");
    await page.until("no banner", () => document.getElementById("banner").hidden);
    assert.equal(await inspect.end(), 130);
    await page.see("#banner", "The command cannot be reached");
    await page.click("#reconnect");
    await page.see("#banner", "has it ended?");
    await page.close();
  });

  test("the servers of a configuration file are one", async () => {
    const folder = mkdtempSync(join(tmpdir(), "inspect-"));
    const file = join(folder, "mcp.json");
    const one = { command: process.execPath, args: [here("server.mjs")] };
    writeFileSync(file, JSON.stringify({ mcpServers: { first: one, second: one } }));
    const inspect = await Command.start(file);
    try {
      const page = await opened(browser, inspect);
      await page.see("#status", "memory");
      await page.see(".side .note", "28 tools");
      await page.type("Filter tools", "second fail");
      await page.click(".entries button");
      await page.click(".run");
      await result(page, "it did not work");
      await page.close();
    } finally {
      assert.equal(await inspect.end(), 130);
      rmSync(folder, { recursive: true });
    }
  });

  test("a server that cannot be reached is said in the page", async () => {
    const inspect = await Command.start("http://127.0.0.1:9/mcp");
    try {
      const page = await browser.page();
      await page.open(inspect.link);
      await page.see("#status", "no connection");
      await page.see("#banner", "127.0.0.1:9");
      assert.deepEqual(page.problems, []);
      await page.close();
    } finally {
      assert.equal(await inspect.end(), 130);
    }
  });

  shown("user interfaces of tools are kept apart", byHand(), async (page) => {
    await choose(page, "map");
    await page.type("city", "Graz");
    await page.click(".run");
    await page.see("iframe");
    assert.equal(
      await page.run(() => document.querySelector("iframe").getAttribute("sandbox")),
      "allow-scripts allow-forms",
    );
    await page.until("the height that it asks for", () => document.querySelector("iframe").style.height === "123px");
    assert.equal(await page.run(() => document.querySelector("iframe").contentDocument), null);
    const found = JSON.parse(await page.inFrame("/app/", () => document.getElementById("out").textContent));
    assert.deepEqual(found, {
      host: "tricorn inspect",
      input: { city: "Graz" },
      result: "the map of Graz",
      called: '{"word":"from the app","count":1}',
      refused: 'there is no tool "hidden" for apps',
      cookie: "refused",
      parent: "refused",
      fetch: "refused",
    });
    await page.see('#log .record[data-method="ui/initialize"]');
    await picture(page, "app");
    // Its policy is what refuses, as it should.
    page.problems = page.problems.filter((problem) => !/Content Security Policy/.test(problem));
  });

  for (const revision of ["2025-11-25", "2026-07-28"]) {
    shown(
      `resources, templates, prompts and tasks of ${revision}`,
      ["--revision", revision, "--env", "EVERYTHING_TASKS=60", "--", everything, "--stdio"],
      async (page) => {
        await page.see("#status", revision);
        await choose(page, "test_input_required_result_elicitation");
        await page.click(".run");
        await page.type("name", "Ada");
        await page.click("dialog button", "Accept");
        await result(page, "Hello, Ada!");
        await page.click("#tab-resources");
        await page.see(".side .note", "resources");
        await page.click(".entries button");
        await page.click(".run", "Read");
        await result(page, "answered");
        await page.click(".entries button", "{");
        await page.see(".detail", "URI that is read");
        await page.click("#tab-prompts");
        await page.click(".entries button");
        await page.see(".detail .run", "Get");
        await page.click("#tab-server");
        await page.see(".wide", revision);
        await page.type("Method", "ping");
        await page.click(".wide .run", "Send");
        await page.until("an answer", () => /answered/.test(document.querySelector(".wide .result").textContent));
        await page.click("#tab-tasks");
        await page.see(".wide .note", revision === "2025-11-25" ? "tasks at the server" : "does not list");
      },
    );
  }

  test("over HTTP exchanges have numbers, tasks are followed, and changes are listened to", async () => {
    const server = spawn(everything, ["--http", "127.0.0.1:0"], {
      env: { ...process.env, EVERYTHING_TASKS: "60" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const lines = createInterface({ input: server.stderr });
    const url = await new Promise((resolve) => {
      lines.on("line", (line) => line.startsWith("ready ") && resolve(line.slice(6)));
    });
    const inspect = await Command.start(url, "--revision", "2025-11-25", "--header", "X-Key: canary-header-value");
    try {
      const page = await opened(browser, inspect);
      await page.see("#status", "http, 2025-11-25");
      await choose(page, "slow_compute");
      await page.type("seconds", "0.01");
      await page.type("label", "it");
      await page.click(".runner .choice input");
      await page.click(".run");
      await result(page, "It runs as task");
      await page.see('#log [data-method="tools/call"] .meta', "post:");
      await page.click(".result button", "Show the tasks");
      await page.click("tbody button", "Result");
      await page.see(".wide .result", "computed it in 0.01 s");
      await page.click("tbody button", "Status");
      await page.see("tbody td", "completed");
      await page.click("#tab-server");
      await page.run(() => document.querySelector("form .choice input").click());
      await page.click("button", "Listen");
      await page.see(".plain li", "toolsListChanged");
      await page.click("#tab-tools");
      await choose(page, "test_trigger_tool_change");
      await page.click(".run");
      await result(page, "answered");
      await page.click("#tab-server");
      await page.see(".plain li", "notifications/tools/list_changed");
      await page.click(".plain button", "End");
      await page.until("no listening", () => document.querySelectorAll("ul.plain")[1].childElementCount === 0);
      assert.deepEqual(page.problems, []);
      await page.close();
    } finally {
      assert.equal(await inspect.end(), 130);
      server.kill();
    }
  });

  shown("templates and prompts are completed by the server", byHand(), async (page) => {
    await page.click("#tab-resources");
    await choose(page, "repo://");
    await page.type("owner", "a");
    await page.until("two names", () => document.querySelectorAll("datalist option").length === 2);
    await page.type("owner", "ada lovelace");
    await page.type("name", "engine");
    await page.type("page", "2");
    assert.equal(
      await page.run(() => document.querySelector('[aria-label="URI"]').value),
      "repo://ada%20lovelace/engine?page=2",
    );
    await page.click(".run", "Read");
    await result(page, "repo://ada%20lovelace/engine?page=2");
    await page.click("#tab-prompts");
    await choose(page, "greet");
    await page.click(".run", "Get");
    await page.see(".problem", "required");
    await page.type("who", "bob");
    await page.click(".run", "Get");
    await result(page, "Greet bob");
  });

  for (const dark of [false, true]) {
    shown(
      `it fits a narrow screen, ${dark ? "dark" : "light"}`,
      byHand(),
      async (page) => {
        const fits = async (what) => {
          const wide = await page.run(() => document.documentElement.scrollWidth);
          assert.ok(wide <= 360, `${what}: ${wide}`);
        };
        for (const tab of ["resources", "prompts", "tasks", "server", "messages", "tools"]) {
          await page.click(`#tab-${tab}`);
          await fits(tab);
          await picture(page, `narrow-${tab}${dark ? "-dark" : ""}`);
        }
        await choose(page, "hurt");
        await fits("hostile names");
        await choose(page, "echo");
        await fits("a form");
        await page.type("word", "x");
        await page.click(".run");
        await picture(page, `narrow-form${dark ? "-dark" : ""}`);
        await choose(page, "ask");
        await page.click(".run");
        await page.see("dialog", "Who are you?");
        await picture(page, `narrow-question${dark ? "-dark" : ""}`);
        await fits("a question");
        await page.click("dialog button", "Decline");
        await page.look({ width: 1280, height: 800, dark });
        await picture(page, `wide${dark ? "-dark" : ""}`);
      },
      { width: 360, height: 740, dark },
    );
  }
});
