// Tools, resources and prompts: a list beside what is chosen of it.

import { openApp, uiOf } from "./apps.js";
import { arrows, button, fill, h, line, long } from "./dom.js";
import { makeForm } from "./form.js";
import { folded, prettyValue } from "./json.js";
import { failure, promptResult, resourceResult, toolResult } from "./results.js";
import { events, has, known, request, start, tell } from "./server.js";

/** Entries that are drawn at once, and details that are kept. */
const ROWS = 200;
const KEPT = 40;

/** A list with a filter. `sources` are lists of the server, `make` makes what is shown of an entry. */
export class View {
  constructor({ name, sources, capability, make, keyOf }) {
    Object.assign(this, {
      name,
      sources,
      capability,
      makeDetail: make,
      keyOf,
      entries: [],
      chosen: null,
      kept: new Map(),
      rows: ROWS,
      loaded: false,
      asked: 0,
    });
    this.filter = h("input", {
      type: "search",
      placeholder: `Filter ${name}`,
      "aria-label": `Filter ${name}`,
      class: "filter",
      oninput: () => {
        this.rows = ROWS;
        this.draw();
      },
      onkeydown: (event) => {
        if (event.key === "ArrowDown") {
          event.preventDefault();
          this.list.querySelector("button")?.focus();
        }
      },
    });
    this.refresh = button("Refresh", () => this.load(), { class: "quiet" });
    this.note = h("p", { class: "note", role: "status" });
    this.list = h("ul", {
      class: "entries",
      "aria-label": name,
      onkeydown: (event) => {
        arrows(event, [...this.list.querySelectorAll("button")]);
      },
    });
    this.detail = h("div", { class: "detail", id: `detail-${name}` });
    this.element = h(
      "div",
      { class: "split" },
      h("div", { class: "side" }, h("div", { class: "bar" }, this.filter, this.refresh), this.note, this.list),
      this.detail,
    );
    this.empty();
  }

  empty() {
    fill(this.detail, h("p", { class: "note" }, `Choose one of the ${this.name}.`));
  }

  /** Asks for the lists again. */
  async load() {
    if (known.state.status !== "connected") return;
    this.loaded = true;
    if (!has(this.capability)) {
      this.entries = [];
      this.draw(`The server says that it has no ${this.name}.`);
      return;
    }
    const asked = ++this.asked;
    this.note.textContent = "Loading…";
    const found = [];
    let problem = null;
    for (const source of this.sources) {
      const done = await start("list", source).done;
      if (asked !== this.asked) return;
      if (done.result)
        for (const entry of done.result) found.push({ source, entry, key: `${source} ${this.keyOf(entry)}` });
      // A server with resources may know no templates.
      else if (done.error && !(source === "templates" && done.error.code === -32601))
        problem = `${source}: ${done.error.message}`;
    }
    this.entries = found;
    for (const [key, kept] of this.kept) {
      const now = found.find((one) => one.key === key);
      if (!now || JSON.stringify(now.entry) !== kept.text) this.kept.delete(key);
    }
    this.draw(problem);
    if (this.chosen && !this.kept.has(this.chosen)) this.choose(found.find((one) => one.key === this.chosen) ?? null);
  }

  reset() {
    this.loaded = false;
    this.asked++;
  }

  draw(problem) {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (one) => {
      const text =
        `${this.keyOf(one.entry)} ${one.entry.title ?? ""} ${String(one.entry.description ?? "").slice(0, 2000)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const found = words.length ? this.entries.filter(fits) : this.entries;
    const rows = found.slice(0, this.rows).map((one) => {
      const label = this.keyOf(one.entry);
      return h(
        "li",
        null,
        button(line(label, 120), () => this.choose(one, true), {
          "aria-current": this.chosen === one.key ? "true" : null,
          title: line(one.entry.description ?? one.entry.title ?? "", 300),
          "data-key": one.key,
        }),
      );
    });
    if (found.length > this.rows)
      rows.push(
        h(
          "li",
          null,
          button(
            `${found.length - this.rows} more`,
            () => {
              this.rows += 2000;
              this.draw();
            },
            { class: "more" },
          ),
        ),
      );
    fill(this.list, rows);
    const counted = words.length ? `${found.length} of ${this.entries.length}` : `${this.entries.length}`;
    if (problem) this.note.textContent = line(problem, 500);
    else this.note.textContent = this.loaded ? `${counted} ${this.name}` : "";
  }

  choose(one, focus) {
    this.chosen = one?.key ?? null;
    for (const own of this.list.querySelectorAll("[data-key]")) {
      if (own.dataset.key === this.chosen) own.setAttribute("aria-current", "true");
      else own.removeAttribute("aria-current");
    }
    if (!one) return this.empty();
    let kept = this.kept.get(one.key);
    if (!kept) {
      kept = { text: JSON.stringify(one.entry), element: this.detailOf(one) };
      this.kept.set(one.key, kept);
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    fill(this.detail, kept.element);
    this.detail.scrollTop = 0;
    if (focus && matchMedia("(max-width: 699px)").matches) this.detail.scrollIntoView();
  }

  /** What is shown of an entry; of one that is unlike any other, its definition. */
  detailOf({ entry, source }) {
    try {
      return this.makeDetail(entry, source);
    } catch (error) {
      const why = `It cannot be shown: ${error.message}`;
      return h("div", null, h("p", { class: "badge bad" }, line(why, 300)), prettyValue(entry));
    }
  }

  /** Opens the entry of this name. */
  open(name) {
    const found = this.entries.find((one) => this.keyOf(one.entry) === name);
    if (found) this.choose(found, true);
    return Boolean(found);
  }
}

/** A button that starts work, with its progress, how to cancel it, and what it came to. */
export function runner({ label, begin, show, extra = [], after }) {
  const result = h("div", { class: "result", "aria-live": "polite" });
  const bar = h("progress", { hidden: true, "aria-label": "Progress" });
  const told = h("span", { class: "note" });
  let running = null;
  const cancel = button("Cancel", () => running?.cancel(), { hidden: true, class: "cancel", title: "Cancel (c)" });
  const run = button(
    label,
    async () => {
      if (running) return;
      const began = performance.now();
      bar.removeAttribute("value");
      told.textContent = "";
      const progress = (at) => {
        if (!running) return;
        bar.hidden = false;
        if (typeof at.total === "number" && at.total > 0) {
          bar.max = at.total;
          bar.value = at.progress;
        }
        told.textContent = line(`${at.progress}${at.total ? ` of ${at.total}` : ""} ${at.message ?? ""}`, 200);
      };
      const work = begin(progress);
      if (!work) return;
      running = work;
      run.disabled = true;
      cancel.hidden = false;
      fill(result, h("p", { class: "note" }, "Waiting for the answer…"));
      const done = await work.done;
      running = null;
      run.disabled = false;
      cancel.hidden = true;
      bar.hidden = true;
      const ms = done.ms ?? performance.now() - began;
      const head = h(
        "p",
        { class: "facts" },
        `${done.cancelled ? "cancelled" : done.error ? "failed" : "answered"} after ${ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`}`,
      );
      told.textContent = "";
      fill(result, head, done.cancelled ? null : done.error ? failure(done.error) : show(done.result, done.text));
      after?.(done);
    },
    { class: "run primary" },
  );
  return {
    element: h("div", { class: "runner" }, h("div", { class: "bar" }, run, cancel, extra, bar, told), result),
    run,
  };
}

const HINTS = {
  readOnlyHint: "reads only",
  destructiveHint: "may destroy",
  idempotentHint: "idempotent",
  openWorldHint: "open world",
};

function headOf(entry, name) {
  const badges = Object.entries(HINTS)
    .filter(([hint]) => entry.annotations?.[hint] === true)
    .map(([, text]) => h("span", { class: "badge" }, text));
  return [
    h("h3", null, line(entry.title ?? entry.annotations?.title ?? name, 200)),
    entry.title && entry.title !== name ? h("p", { class: "facts" }, h("code", null, line(name, 300))) : null,
    badges.length
      ? h(
          "p",
          null,
          badges.flatMap((badge) => [badge, " "]),
        )
      : null,
    entry.description ? long(entry.description, 2000, "p") : null,
  ];
}

function toolDetail(tool) {
  const name = String(tool.name);
  const form = makeForm(tool.inputSchema);
  const taskSupport = tool.execution?.taskSupport;
  const canBeTask = has("tasks.requests.tools.call") && (taskSupport === "optional" || taskSupport === "required");
  const asTask = h("input", { type: "checkbox" });
  if (taskSupport === "required") asTask.checked = true;
  const appHolder = h("div");
  const ui = uiOf(tool);
  let given = "{}";
  const work = runner({
    label: "Call",
    extra: canBeTask ? [h("label", { class: "choice" }, asTask, " as a task")] : [],
    begin(progress) {
      const text = form.text();
      if (text === null) return null;
      given = text;
      const params = `{"name":${JSON.stringify(name)},"arguments":${text}}`;
      return asTask.checked && canBeTask
        ? start("call-as-task", "tools/call", { params })
        : start("request", "tools/call", { params, progress });
    },
    show(result, text) {
      if (result?.taskId && result.created) {
        tell("task", { taskId: result.taskId, tool: name });
        return [
          h(
            "p",
            null,
            "It runs as task ",
            h("code", null, line(result.taskId, 100)),
            " ",
            button("Show the tasks", () => tell("tab", "tasks"), { class: "quiet" }),
          ),
        ];
      }
      return toolResult(result, text);
    },
    after(done) {
      if (ui && done.result && !done.result.created)
        openApp(appHolder, { uri: ui, tool, argumentsText: given, result: done.result });
    },
  });
  const parts = [...headOf(tool, name), form.element, work.element];
  if (ui)
    parts.push(
      h(
        "p",
        { class: "about" },
        "It has a user interface, ",
        h("code", null, line(ui, 200)),
        ", which is shown after the call.",
      ),
      appHolder,
    );
  parts.push(folded("Definition", () => prettyValue(tool)));
  const element = h("form", { class: "tool", novalidate: true, onsubmit: (event) => event.preventDefault() }, parts);
  return element;
}

/** Lets an input ask the server how it could go on. */
function completing(input, ref, argument, others) {
  if (!has("completions") || !input) return;
  const options = h("datalist", { id: `${input.id}-options` });
  input.setAttribute("list", options.id);
  input.after(options);
  let timer = 0;
  let asked = 0;
  const ask = async () => {
    const own = ++asked;
    const rest = others();
    delete rest[argument];
    const params = { ref, argument: { name: argument, value: input.value } };
    if (Object.keys(rest).length) params.context = { arguments: rest };
    try {
      const { completion } = await request("completion/complete", params);
      if (own !== asked) return;
      fill(
        options,
        (Array.isArray(completion?.values) ? completion.values : [])
          .slice(0, 100)
          .map((value) => h("option", { value: String(value) })),
      );
    } catch {
      fill(options);
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 200);
  });
  input.addEventListener("focus", () => {
    if (!options.childElementCount) ask();
  });
}

/** A form of texts, each completed by the server. */
function textForm(names, ref, change) {
  // One line each: an area has no list of values.
  const properties = Object.fromEntries(
    names.map(({ name, description }) => [name, { type: "string", description, isLine: true }]),
  );
  const schema = {
    type: "object",
    properties,
    required: names.filter((one) => one.required).map((one) => one.name),
    additionalProperties: false,
  };
  const form = makeForm(schema, { change });
  const values = () =>
    Object.fromEntries(
      names.map(({ name }) => [name, form.fields(name)?.input?.value ?? ""]).filter(([, value]) => value !== ""),
    );
  const connect = () =>
    names.forEach(({ name }) => {
      const input = form.fields(name)?.input;
      if (input) completing(input, ref, name, values);
    });
  return { ...form, values, connect };
}

function promptDetail(prompt) {
  const name = String(prompt.name);
  const names = (Array.isArray(prompt.arguments) ? prompt.arguments : [])
    .slice(0, 100)
    .map((one) => ({ name: String(one?.name), description: one?.description, required: one?.required === true }));
  const form = textForm(names, { type: "ref/prompt", name });
  form.connect();
  const work = runner({
    label: "Get",
    begin(progress) {
      const text = form.text();
      return text === null
        ? null
        : start("request", "prompts/get", { params: `{"name":${JSON.stringify(name)},"arguments":${text}}`, progress });
    },
    show: promptResult,
  });
  return h(
    "form",
    { novalidate: true, onsubmit: (event) => event.preventDefault() },
    headOf(prompt, name),
    form.element,
    work.element,
    folded("Definition", () => prettyValue(prompt)),
  );
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

function variablesOf(template) {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , inner]) =>
    inner.split(",").map((part) => part.replace(/(\*|:\d+)$/, "")),
  );
  return [...new Set(names)];
}

/** A URI of a template (RFC 6570, without lists). */
export function expand(template, values) {
  return template.replace(EXPRESSION, (_, operator, inner) => {
    const encode = (text) =>
      operator === "+" || operator === "#"
        ? encodeURI(text).replaceAll("%25", "%")
        : encodeURIComponent(text).replace(
            /[!'()*]/g,
            (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
          );
    const named = operator === ";" || operator === "?" || operator === "&";
    const parts = inner.split(",").flatMap((part) => {
      const [, name, length] = /^(.*?)(?:\*|:(\d+))?$/.exec(part);
      if (values[name] === undefined) return [];
      const text = encode(length ? [...values[name]].slice(0, Number(length)).join("") : values[name]);
      return [named ? `${name}${operator === ";" && !text ? "" : "="}${text}` : text];
    });
    if (!parts.length) return "";
    const first = { "#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&" }[operator] ?? "";
    const between = { ".": ".", "/": "/", ";": ";", "?": "&", "&": "&" }[operator] ?? ",";
    return first + parts.join(between);
  });
}

const subscribed = new Set();
events.addEventListener("state", ({ detail }) => {
  if (detail.status !== "connected") subscribed.clear();
});

function reading(uriOf) {
  const label = () => (subscribed.has(uriOf()) ? "Unsubscribe" : "Subscribe");
  const subscribe = button(
    "Subscribe",
    async () => {
      const uri = uriOf();
      const ends = subscribed.has(uri);
      const done = await start("request", ends ? "resources/unsubscribe" : "resources/subscribe", {
        params: JSON.stringify({ uri }),
      }).done;
      if (done.error) tell("banner", done.error.message);
      else if (ends) subscribed.delete(uri);
      else subscribed.add(uri);
      subscribe.textContent = label();
    },
    { class: "quiet" },
  );
  const appHolder = h("div");
  const work = runner({
    label: "Read",
    extra: has("resources.subscribe") ? [subscribe] : [],
    begin: (progress) => {
      const uri = uriOf();
      return uri ? start("request", "resources/read", { params: JSON.stringify({ uri }), progress }) : null;
    },
    show: resourceResult,
    after(done) {
      const isApp = (entry) =>
        typeof entry?.mimeType === "string" && /^text\/html;\s*profile=mcp-app/.test(entry.mimeType);
      if (done.result?.contents?.some?.(isApp)) openApp(appHolder, { uri: uriOf() });
    },
  });
  return [work.element, appHolder];
}

function resourceDetail(resource, source) {
  if (source === "templates") return templateDetail(resource);
  const uri = String(resource.uri);
  return h(
    "form",
    { novalidate: true, onsubmit: (event) => event.preventDefault() },
    headOf({ ...resource, title: resource.title ?? resource.name }, uri),
    h(
      "p",
      { class: "facts" },
      [resource.mimeType, typeof resource.size === "number" ? `${resource.size} bytes` : null]
        .filter(Boolean)
        .map((text) => line(text, 100))
        .join(", "),
    ),
    reading(() => uri),
    folded("Definition", () => prettyValue(resource)),
  );
}

function templateDetail(template) {
  const text = String(template.uriTemplate);
  const uri = h("input", { type: "text", "aria-label": "URI", spellcheck: "false", class: "code" });
  const form = textForm(
    variablesOf(text)
      .slice(0, 50)
      .map((name) => ({ name, required: false })),
    { type: "ref/resource", uri: text },
    () => {
      uri.value = expand(text, form.values());
    },
  );
  form.connect();
  uri.value = expand(text, {});
  return h(
    "form",
    { novalidate: true, onsubmit: (event) => event.preventDefault() },
    headOf({ ...template, title: template.title ?? template.name }, text),
    form.element,
    h("div", { class: "field" }, h("label", null, "URI that is read ", uri)),
    reading(() => uri.value),
    folded("Definition", () => prettyValue(template)),
  );
}

export const views = {
  tools: new View({
    name: "tools",
    sources: ["tools"],
    capability: "tools",
    keyOf: (entry) => String(entry.name ?? "?"),
    make: toolDetail,
  }),
  resources: new View({
    name: "resources",
    sources: ["resources", "templates"],
    capability: "resources",
    keyOf: (entry) => String(entry.uri ?? entry.uriTemplate ?? "?"),
    make: resourceDetail,
  }),
  prompts: new View({
    name: "prompts",
    sources: ["prompts"],
    capability: "prompts",
    keyOf: (entry) => String(entry.name ?? "?"),
    make: promptDetail,
  }),
};

events.addEventListener("read", async ({ detail: uri }) => {
  tell("tab", "resources");
  if (!views.resources.loaded) await views.resources.load();
  if (views.resources.open(uri)) return;
  const entry = { uri, name: uri };
  views.resources.choose({ key: `link ${uri}`, source: "resources", entry }, true);
});

const timers = new Map();
events.addEventListener("log", ({ detail }) => {
  const match =
    detail.from === "server" && /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(detail.method ?? "");
  if (!match || detail.c !== known.state.connection) return;
  const view = views[match[1]];
  if (!view.loaded) return;
  clearTimeout(timers.get(view));
  timers.set(
    view,
    setTimeout(() => view.load(), 300),
  );
});
