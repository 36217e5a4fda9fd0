// Chromium without a screen, driven over two pipes (DevTools protocol); nothing but Node is needed.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const LIMIT = Number(process.env.INSPECT_LIMIT ?? 30_000);
/** With this set, scripts and styles come from that folder: to work on the page without compiling. */
const FILES = process.env.INSPECT_FILES;

/** The program: `CHROMIUM`, what is in `PATH`, or what `cargo xtask setup` has unpacked. */
export function chromium() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const inPath = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));
  const own = fileURLToPath(new URL("../../target/chromium/chromium", import.meta.url));
  return [process.env.CHROMIUM, ...inPath, own].find((path) => path && existsSync(path));
}

export class Browser {
  #child;
  #home = mkdtempSync(join(tmpdir(), "inspect-browser-"));
  #waiting = new Map();
  #listeners = new Set();
  #last = 0;

  constructor(program) {
    const options = [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--remote-debugging-pipe",
      `--user-data-dir=${this.#home}`,
      "about:blank",
    ];
    this.#child = spawn(program, options, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    let rest = "";
    this.#child.stdio[4].setEncoding("utf8").on("data", (piece) => {
      const parts = (rest + piece).split("\0");
      rest = parts.pop();
      for (const part of parts) this.#hear(JSON.parse(part));
    });
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the browser has ended"));
    });
  }

  #hear(message) {
    const wait = this.#waiting.get(message.id);
    if (wait) {
      this.#waiting.delete(message.id);
      if (message.error) wait.reject(new Error(`${wait.method}: ${message.error.message}`));
      else wait.resolve(message.result);
    }
    for (const listener of this.#listeners) listener(message);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, method });
      this.#child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  on(listener) {
    this.#listeners.add(listener);
  }

  /** A page with cookies of its own, or those of another page. */
  async page({ context, width = 1280, height = 800, dark = false } = {}) {
    const browserContextId = context ?? (await this.send("Target.createBrowserContext")).browserContextId;
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId, browserContextId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    await page.look({ width, height, dark });
    if (FILES) await page.send("Fetch.enable", { patterns: [{ urlPattern: "http://127.0.0.1*" }] });
    return page;
  }

  async close() {
    const ended = new Promise((resolve) => {
      this.#child.once("exit", resolve);
    });
    await this.send("Browser.close").catch(() => this.#child.kill());
    await ended;
    rmSync(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  /** Faults in the page: exceptions, and requests that its policy forbids. */
  problems = [];
  /** The addresses that it asked for. */
  asked = [];

  constructor(browser, sessionId, targetId, context) {
    Object.assign(this, { browser, sessionId, targetId, context });
    browser.on(({ sessionId: own, method, params }) => {
      if (own !== sessionId) return;
      if (method === "Runtime.exceptionThrown") this.problems.push(params.exceptionDetails.exception?.description);
      if (method === "Log.entryAdded" && params.entry.level === "error") this.problems.push(params.entry.text);
      if (method === "Network.requestWillBeSent") this.asked.push(params.request.url);
      if (method === "Fetch.requestPaused") this.#answer(params);
    });
  }

  /** Gives the page's files of the source folder instead of those in the command. */
  #answer({ requestId, request }) {
    const name = new URL(request.url).pathname.split("/").pop();
    const type = { js: "text/javascript", css: "text/css" }[name.split(".").pop()];
    const answered = type
      ? this.send("Fetch.fulfillRequest", {
          requestId,
          responseCode: 200,
          responseHeaders: [{ name: "content-type", value: type }],
          body: readFileSync(join(FILES, name)).toString("base64"),
        })
      : this.send("Fetch.continueRequest", { requestId });
    answered.catch(() => {});
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  look({ width, height, dark = false }) {
    return Promise.all([
      this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }),
      this.send("Emulation.setEmulatedMedia", {
        features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }],
      }),
    ]);
  }

  async open(url) {
    await this.send("Page.navigate", { url });
  }

  /** Returns the value of a function in the page; its arguments are JSON. */
  async run(work, ...given) {
    const expression = `(${work})(...${JSON.stringify(given)})`;
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until a function gives something in the page. */
  async until(what, work, ...given) {
    const end = Date.now() + LIMIT;
    for (;;) {
      // The page may be on its way to another one.
      const found = await this.run(work, ...given).catch((error) => ({ error }));
      if (found && !found.error) return found;
      if (Date.now() > end) {
        const text = await this.run(() => document.body?.textContent.slice(0, 3000)).catch(() => "");
        throw new Error(`${what} did not come; ${found?.error?.message ?? ""}\n${text}\n${this.problems.join("\n")}`);
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 30);
      });
    }
  }

  /** Waits for an element, by its selector and a text in it. */
  see(selector, text = "") {
    return this.until(
      `${selector} with ${JSON.stringify(text)}`,
      (wanted, part) =>
        [...document.querySelectorAll(wanted)].some((one) => one.checkVisibility() && one.textContent.includes(part)),
      selector,
      text,
    );
  }

  /** Clicks an element, once it is there. */
  async click(selector, text = "") {
    await this.see(selector, text);
    await this.run(
      (wanted, part) =>
        [...document.querySelectorAll(wanted)]
          .find((one) => one.checkVisibility() && one.textContent.includes(part))
          .click(),
      selector,
      text,
    );
  }

  /** Types into the field with this label. */
  async type(label, text) {
    await this.until(
      `a field ${label}`,
      (name, value) => {
        const of = [...document.querySelectorAll("label")].find(
          (one) => one.checkVisibility() && one.textContent.replace(" *", "").trim() === name,
        );
        const field = of ? document.getElementById(of.htmlFor) : document.querySelector(`[aria-label="${name}"]`);
        if (!field) return false;
        field.focus();
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        field.dispatchEvent(new Event("change", { bubbles: true }));
        field.blur();
        return true;
      },
      label,
      text,
    );
  }

  /** Presses keys, each as a person would. */
  async press(...keys) {
    for (const given of keys) {
      const parts = given.split("+");
      const key = given === "+" ? "+" : parts.at(-1);
      const modifiers = parts.length > 1 && parts[0] === "Ctrl" ? 2 : parts.length > 1 && parts[0] === "Shift" ? 8 : 0;
      const code = { Enter: 13, Tab: 9, Escape: 27, ArrowDown: 40, ArrowUp: 38, ArrowRight: 39 }[key] ?? 0;
      const text = key === "Enter" ? "\r" : key.length === 1 && !modifiers ? key : undefined;
      await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, text, modifiers, windowsVirtualKeyCode: code });
      await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers, windowsVirtualKeyCode: code });
    }
  }

  /** Returns the value of a function in the frame of this page that is a process of its own. */
  async inFrame(address, work) {
    const { targetInfos } = await this.browser.send("Target.getTargets", { filter: [{ type: "iframe" }] });
    const frame = targetInfos.find(({ url }) => url.includes(address));
    const { sessionId } = await this.browser.send("Target.attachToTarget", { targetId: frame.targetId, flatten: true });
    const { result } = await this.browser.send(
      "Runtime.evaluate",
      { expression: `(${work})()`, returnByValue: true },
      sessionId,
    );
    return result.value;
  }

  write(text) {
    return this.send("Input.insertText", { text });
  }

  text(selector) {
    return this.run((wanted) => document.querySelector(wanted)?.textContent ?? "", selector);
  }

  async picture() {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Buffer.from(data, "base64");
  }

  close() {
    return this.browser.send("Target.closeTarget", { targetId: this.targetId });
  }
}
