// The messages, both ways, and what else happened.

import { arrows, button, fill, h, line, long, size, time } from "./dom.js";
import { pretty, problem } from "./json.js";
import { events, post, tell } from "./server.js";

/** As the command keeps them. */
const RECORDS = 5000;
const BYTES = 16 << 20;
/** Rows that are drawn at once. */
const ROWS = 300;

const KINDS = {
  all: () => true,
  calls: (record) => ["request", "result", "error", "batch"].includes(record.kind),
  notifications: (record) => record.kind === "notification",
  output: (record) => !record.from || record.method === "notifications/message",
  errors: (record) => ["error", "warning", "closed", "unreadable"].includes(record.kind) || isFailure(record),
};

const records = [];
let bytes = 0;
let shownRows = ROWS;
let parts = null;
let drawing = 0;
let fresh = [];
const asked = new Map();

/** A tool's result that says it is an error. */
function isFailure(record) {
  return record.kind === "result" && record.text.length < 1e6 && /"isError"\s*:\s*true/.test(record.text);
}

function key(record, from) {
  return JSON.stringify([record.c, record.s ?? null, from, record.id]);
}

/** The stream of a record, with the server of a group. */
function stream(record) {
  return record.s ? `${record.s}: ${record.on}` : record.on;
}

/** Subject of a record, on one line. */
function summary(record) {
  if (record.kind === "stderr") return ["stderr", record.text];
  if (!record.from) return [record.kind, record.text];
  if (record.kind === "request") return [record.method, named(record)];
  if (record.kind === "notification") return [record.method.replace(/^notifications\//, ""), told(record)];
  if (record.kind === "result" || record.kind === "error") {
    const about = record.request ? record.request.method : "?";
    return [
      record.kind === "error" ? `error of ${about}` : `result of ${about}`,
      record.kind === "error" ? errorText(record) : "",
    ];
  }
  return [record.kind, record.text.slice(0, 200)];
}

function read(record) {
  if (record.text.length > 100_000) return {};
  try {
    return JSON.parse(record.text) ?? {};
  } catch {
    return {};
  }
}

function named(record) {
  const { params } = read(record);
  return (
    params?.name ?? params?.uri ?? params?.taskId ?? params?.ref?.name ?? params?.ref?.uri ?? params?.message ?? ""
  );
}

function told(record) {
  const { params } = read(record);
  if (record.method === "notifications/message") {
    return `${params?.level ?? ""} ${typeof params?.data === "string" ? params.data : JSON.stringify(params?.data)}`;
  }
  if (record.method === "notifications/progress")
    return `${params?.progress}${params?.total ? ` of ${params.total}` : ""} ${params?.message ?? ""}`;
  return params?.uri ?? params?.reason ?? params?.taskId ?? "";
}

function errorText(record) {
  const { error } = read(record);
  return error ? `${error.code} ${error.message}` : "";
}

function row(record) {
  const [about, rest] = summary(record);
  const way = record.from === "client" ? "→" : record.from === "server" ? "←" : "·";
  const whose = record.from === "client" ? "sent" : record.from === "server" ? "received" : "event";
  const level = KINDS.errors(record) ? " bad" : record.kind === "stderr" ? " quiet" : "";
  const id = record.id !== undefined && record.id !== null ? ` #${line(record.id, 20)}` : "";
  const taken = record.request ? time(record.t - record.request.t) : "";
  const head = h(
    "button",
    { type: "button", class: "head", "aria-expanded": "false", onclick: () => toggle() },
    h("span", { class: "when" }, (record.t / 1000).toFixed(3)),
    h("span", { class: `way ${whose}`, "aria-label": whose }, way),
    h("span", { class: "what" }, h("b", null, line(about, 80)), id, " ", h("span", { class: "rest" }, line(rest, 160))),
    h(
      "span",
      { class: "meta" },
      [stream(record), size(record.text.length), taken]
        .filter(Boolean)
        .map((text) => h("span", null, line(text, 30)))
        .flatMap((one, at) => (at ? [" ", one] : [one])),
    ),
  );
  const item = h(
    "li",
    {
      class: `record ${record.from ?? record.kind}${level}`,
      "data-n": record.n,
      "data-kind": record.kind,
      "data-method": record.method ?? record.request?.method ?? null,
    },
    head,
  );
  const toggle = () => {
    const open = head.getAttribute("aria-expanded") === "true";
    head.setAttribute("aria-expanded", String(!open));
    if (open) return item.querySelector(".body")?.remove();
    const isJson = record.from && problem(record.text) === null;
    item.append(
      h(
        "div",
        { class: "body" },
        h(
          "p",
          { class: "facts" },
          `${whose} at ${(record.t / 1000).toFixed(3)} s, connection ${record.c}${record.on ? `, ${stream(record)}` : ""}`,
          record.request ? `; ${taken} after its request` : null,
          " ",
          copy(record.text),
        ),
        isJson ? pretty(record.text) : long(record.text),
      ),
    );
  };
  return item;
}

function copy(text) {
  const own = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        own.textContent = "Copied";
      } catch {
        own.textContent = "Not allowed";
      }
    },
    { class: "quiet" },
  );
  return own;
}

function matches(record) {
  const { kind, search } = parts;
  if (!KINDS[kind.value](record)) return false;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const text =
    `${record.method ?? ""} ${record.request?.method ?? ""} ${record.kind} ${stream(record) ?? ""} ${record.text}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function redraw() {
  fresh = [];
  const found = [];
  let at = records.length - 1;
  for (; at >= 0 && found.length < shownRows; at--) if (matches(records[at])) found.push(records[at]);
  let more = false;
  for (; at >= 0 && !more; at--) more = matches(records[at]);
  fill(parts.list, found.reverse().map(row));
  parts.older.hidden = !more;
  count();
  parts.scroll.scrollTop = parts.scroll.scrollHeight;
}

function count() {
  parts.count.textContent = `${records.length} kept, ${size(bytes)}`;
}

/** Adds what came since the last time, without touching what is open. */
function draw() {
  drawing = 0;
  const { scroll, list } = parts;
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
  const some = fresh.filter(matches);
  fresh = [];
  list.append(...some.slice(-ROWS).map(row));
  while (list.childElementCount > Math.max(shownRows, ROWS)) {
    list.firstElementChild.remove();
    parts.older.hidden = false;
  }
  count();
  if (atEnd) scroll.scrollTop = scroll.scrollHeight;
}

function later() {
  if (!drawing) drawing = requestAnimationFrame(draw);
}

/** Adds a record. What the page itself adds has no number. */
export function add(record) {
  if (record.kind === "request") asked.set(key(record, record.from), record);
  if (record.kind === "result" || record.kind === "error") {
    const from = record.from === "client" ? "server" : "client";
    const request = asked.get(key(record, from));
    if (request) record.request = { method: request.method, t: request.t };
    asked.delete(key(record, from));
  }
  if (asked.size > RECORDS) asked.delete(asked.keys().next().value);
  records.push(record);
  bytes += record.text.length;
  while (records.length > RECORDS || (bytes > BYTES && records.length > 1)) bytes -= records.shift().text.length;
  fresh.push(record);
  later();
}

function clear() {
  records.length = 0;
  bytes = 0;
  asked.clear();
  redraw();
}

export function make(element) {
  let timer = 0;
  const search = h("input", {
    type: "search",
    placeholder: "Search messages",
    "aria-label": "Search messages",
    id: "log-search",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        shownRows = ROWS;
        redraw();
      }, 150);
    },
  });
  const kind = h(
    "select",
    {
      "aria-label": "Kind of messages",
      id: "log-kind",
      onchange: () => {
        shownRows = ROWS;
        redraw();
      },
    },
    Object.entries({
      all: "Everything",
      calls: "Requests and answers",
      notifications: "Notifications",
      output: "Output and log",
      errors: "Errors",
    }).map(([value, text]) => h("option", { value }, text)),
  );
  const list = h("ol", {
    class: "records",
    "aria-label": "Messages, the newest last",
    onkeydown: (event) => {
      arrows(event, [...list.querySelectorAll(".head")]);
    },
  });
  const older = button(
    "Older messages",
    () => {
      shownRows += ROWS;
      redraw();
      parts.scroll.scrollTop = 0;
    },
    { class: "quiet", hidden: true },
  );
  const scroll = h("div", { class: "scroll" }, older, list);
  const counted = h("span", { class: "count", "aria-live": "off" });
  const exporting = h(
    "a",
    {
      href: "cassette",
      download: "inspect.jsonl",
      id: "export",
      title: "Save the messages as a cassette, without secrets (e)",
    },
    "Export",
  );
  parts = { search, kind, list, older, scroll, count: counted };
  fill(
    element,
    h(
      "div",
      { class: "bar" },
      h("h2", null, "Messages"),
      counted,
      search,
      kind,
      exporting,
      button("Clear", () => post("clear").catch((error) => tell("banner", error.message)), { id: "clear" }),
    ),
    scroll,
  );
  redraw();
}

events.addEventListener("log", ({ detail }) => add(detail));
events.addEventListener("cleared", clear);
events.addEventListener("begin", ({ detail }) => {
  if (detail.anew && records.length) clear();
});
