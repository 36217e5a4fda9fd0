// User interfaces of tools (MCP Apps): HTML of the server in a frame without an origin. It speaks with this page by messages.

import { button, fill, h, line, page } from "./dom.js";
import { folded, prettyValue } from "./json.js";
import { add } from "./log.js";
import { failure } from "./results.js";
import { events, known, request, start } from "./server.js";

const VERSION = "2026-01-26";
/** Requests of one app that are worked on at once. */
const MOST = 20;

/** The address of a tool's user interface. */
export function uiOf(tool) {
  const ui = tool._meta?.ui;
  const uri = (ui === undefined ? undefined : ui?.resourceUri) ?? tool._meta?.["ui/resourceUri"];
  return typeof uri === "string" && uri.startsWith("ui://") ? uri : null;
}

/** Opens one, in the place of what the holder shows. */
export async function openApp(holder, { uri, tool, argumentsText, result }) {
  holder.dispatchEvent(new Event("end"));
  fill(holder, h("p", { class: "note" }, "Opening the user interface…"));
  const done = await start("open-app", uri).done;
  if (!done.result) return fill(holder, done.error ? failure(done.error) : null);
  const { app, origins, prefersBorder } = done.result;
  const wanted = Object.entries(origins).flatMap(([kind, list]) => list.map((origin) => `${origin} (${kind})`));
  const frame = h("iframe", {
    sandbox: "allow-scripts allow-forms",
    title: `User interface ${line(uri, 100)}`,
    class: prefersBorder === false ? "app" : "app border",
    referrerpolicy: "no-referrer",
  });
  const reaches = h("input", { type: "checkbox", onchange: () => load() });
  const load = () => {
    frame.src = `app/${app}${reaches.checked ? "?reaches" : ""}`;
  };
  const host = new Host({ frame, uri, tool, argumentsText, result });
  fill(
    holder,
    h(
      "div",
      { class: "bar" },
      h("h4", null, "User interface"),
      button("Reload", load, { class: "quiet" }),
      button("Close", () => holder.dispatchEvent(new Event("end")), { class: "quiet" }),
    ),
    wanted.length
      ? h(
          "div",
          null,
          h("label", { class: "choice" }, reaches, " let it reach what it declares"),
          folded("Origins", () => prettyValue(wanted)),
        )
      : null,
    frame,
    host.notes,
  );
  holder.addEventListener(
    "end",
    () => {
      host.end();
      fill(holder);
    },
    { once: true },
  );
  load();
}

/** The host's side of one app. */
class Host {
  constructor({ frame, uri, tool, argumentsText, result }) {
    Object.assign(this, { frame, uri, tool, argumentsText, result, working: 0, connection: known.state.connection });
    this.notes = h("div", { class: "notes", "aria-live": "polite" });
    this.hear = (event) => {
      if (event.source === frame.contentWindow) this.message(event.data);
    };
    addEventListener("message", this.hear);
  }

  end() {
    removeEventListener("message", this.hear);
  }

  send(message) {
    this.log("client", message);
    // The frame has no origin that could be named.
    this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  log(from, message) {
    const text = JSON.stringify(message) ?? "";
    if (text.length > 1e6) return;
    const kind = message.method
      ? message.id === undefined
        ? "notification"
        : "request"
      : message.error
        ? "error"
        : "result";
    add({
      n: 0,
      t: clock(),
      c: `app ${this.uri}`,
      kind,
      from,
      on: "app",
      id: message.id === undefined ? undefined : JSON.stringify(message.id),
      method: message.method,
      text,
    });
  }

  async message(message) {
    if (!message || typeof message !== "object" || message.jsonrpc !== "2.0") return;
    this.log("server", message);
    const { id, method, params } = message;
    if (typeof method !== "string") return;
    if (id === undefined || id === null) return this.told(method, params);
    if (this.working >= MOST)
      return this.send({ id, error: { code: -32000, message: `${MOST} requests are worked on already` } });
    this.working++;
    try {
      this.send({ id, result: (await this.asked(method, params ?? {})) ?? {} });
    } catch (error) {
      this.send({
        id,
        error: { code: Number.isInteger(error.code) ? error.code : -32603, message: String(error.message) },
      });
    } finally {
      this.working--;
    }
  }

  told(method, params) {
    if (method === "ui/notifications/initialized") {
      if (this.argumentsText !== undefined)
        this.send({ method: "ui/notifications/tool-input", params: { arguments: JSON.parse(this.argumentsText) } });
      if (this.result !== undefined) this.send({ method: "ui/notifications/tool-result", params: this.result });
    } else if (method === "ui/notifications/size-changed" && Number.isFinite(params?.height)) {
      this.frame.style.height = `${Math.min(2000, Math.max(60, params.height))}px`;
    }
  }

  async asked(method, params) {
    switch (method) {
      case "ping":
        return {};
      case "ui/initialize":
        return {
          protocolVersion: VERSION,
          hostInfo: { name: "tricorn inspect", version: known.state.version },
          hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} },
          hostContext: {
            theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
            displayMode: "inline",
            availableDisplayModes: ["inline"],
            platform: "web",
            locale: navigator.language,
            timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
            ...(this.tool ? { toolInfo: { tool: this.tool } } : {}),
          },
        };
      case "tools/call":
        await this.mayCall(params?.name);
        return request("tools/call", params);
      case "resources/read":
      case "resources/list":
      case "resources/templates/list":
      case "prompts/list":
        return request(method, params);
      case "ui/open-link":
        return this.openLink(params?.url);
      case "ui/request-display-mode":
        return { mode: "inline" };
      case "ui/message":
      case "ui/update-model-context":
        this.note(method === "ui/message" ? "It says to the model" : "It tells the model", params);
        return {};
      default:
        throw Object.assign(new Error(`${method} is not served`), { code: -32601 });
    }
  }

  /** Tools say whether an app may call them. */
  async mayCall(name) {
    if (this.connection !== known.state.connection)
      throw new Error("the connection is another one now: open the app again");
    const done = await start("list", "tools").done;
    const tool = done.result?.find((one) => one.name === name);
    const visibility = tool?._meta?.ui?.visibility ?? ["model", "app"];
    if (!tool || !Array.isArray(visibility) || !visibility.includes("app")) {
      throw Object.assign(new Error(`there is no tool ${JSON.stringify(name)} for apps`), { code: -32602 });
    }
  }

  openLink(text) {
    const url = page(text);
    if (!url) throw new Error("that is no page");
    this.show(
      h(
        "p",
        null,
        "It wants to open ",
        h("code", { class: "wrap" }, line(text, 2000)),
        " on ",
        h("strong", null, line(url.host, 300)),
        " ",
        button("Open", () => window.open(url.href, "_blank", "noopener,noreferrer"), { class: "quiet" }),
      ),
    );
    return {};
  }

  note(what, value) {
    this.show(h("div", null, h("p", { class: "facts" }, what), prettyValue(value)));
  }

  show(element) {
    this.notes.append(element);
    while (this.notes.childElementCount > 20) this.notes.firstElementChild.remove();
  }
}

let offset = 0;
events.addEventListener("state", ({ detail }) => {
  offset = detail.now - performance.now();
});
const clock = () => performance.now() + offset;
