// The frame of the page: tabs, the connection's state, the keyboard.

import { arrows, button, fill, h, line } from "./dom.js";
import * as log from "./log.js";
import { serverPanel, tasksPanel } from "./panels.js";
import "./questions.js";
import { events, known, listen, post, tell } from "./server.js";
import { views } from "./views.js";

const at = (id) => document.getElementById(id);
const panel = at("panel");
const dialog = at("dialog");
const banner = at("banner");

const parts = {
  tools: { title: "Tools", view: views.tools },
  resources: { title: "Resources", view: views.resources },
  prompts: { title: "Prompts", view: views.prompts },
  tasks: { title: "Tasks", ...tasksPanel() },
  server: { title: "Server", ...serverPanel() },
  messages: { title: "Messages" },
};
const names = Object.keys(parts);
let current = "tools";

const tabs = names.map((name, place) =>
  button(parts[name].title, () => choose(name), {
    role: "tab",
    id: `tab-${name}`,
    "aria-controls": name === "messages" ? "log" : "panel",
    "aria-selected": "false",
    title: `${parts[name].title} (${place + 1})`,
  }),
);
fill(at("tabs"), tabs);
at("tabs").addEventListener("keydown", (event) => {
  const to = arrows(event, tabs, false);
  if (to) choose(names[tabs.indexOf(to)], true);
});

function choose(name, stays) {
  current = name;
  document.body.dataset.part = name;
  for (const tab of tabs) {
    const own = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(own));
    tab.tabIndex = own ? 0 : -1;
  }
  const part = parts[name];
  panel.setAttribute("aria-labelledby", `tab-${name}`);
  if (name === "messages") {
    if (!stays) at("log-search").focus();
    return;
  }
  fill(panel, part.view ? part.view.element : part.element);
  load();
}

/** Asks for what the part shows, once for each connection. */
function load() {
  const part = parts[current];
  if (known.state.status !== "connected") return;
  if (part.view && !part.view.loaded) part.view.load();
  else if (part.load && part.loadedFor !== known.state.connection) {
    part.loadedFor = known.state.connection;
    part.load();
  }
}

let connection = 0;
events.addEventListener("state", ({ detail: state }) => {
  at("server-name").textContent = line(
    state.server?.title ?? state.server?.name ?? state.target ?? "tricorn inspect",
    80,
  );
  document.title = `${line(state.server?.name ?? state.target ?? "", 60)} – tricorn inspect`;
  const words = {
    connecting: "connecting…",
    connected: `connected, ${state.transport}, ${state.revision}`,
    failed: "no connection",
    closed: "the connection has ended",
  };
  const status = at("status");
  status.className = state.status;
  status.textContent = words[state.status] ?? state.status;
  at("reconnect").disabled = state.status === "connecting";
  if (state.connection !== connection) {
    connection = state.connection;
    for (const view of Object.values(views)) view.reset();
  }
  say("state", state.why ? `${words[state.status]}: ${state.why}` : null);
  load();
});

// Texts of the banner, by their sources.
const said = new Map();

function say(who, text, more) {
  if (text) said.set(who, [line(text, 1000), more ?? null]);
  else said.delete(who);
  banner.hidden = said.size === 0;
  fill(
    banner,
    [...said.values()].map(([words, extra]) => h("span", { class: "said" }, words, " ", extra)),
  );
}

events.addEventListener("open", () => say("stream", null));
events.addEventListener("gone", ({ detail }) =>
  say(
    "stream",
    detail.forever
      ? "The command does not know this page any more: open the link that it has printed."
      : "The command cannot be reached: it has ended, or will be back in a moment.",
  ),
);
events.addEventListener("replaced", () =>
  say("stream", "Newer pages have taken this one's place.", button("Use this one", listen)),
);
events.addEventListener("banner", ({ detail }) =>
  say(
    "error",
    detail,
    button("Dismiss", () => say("error", null)),
  ),
);
events.addEventListener("tab", ({ detail }) => choose(detail));

const reconnect = () => post("reconnect").catch((error) => tell("banner", error.message));
at("reconnect").addEventListener("click", reconnect);

const KEYS = [
  ["1 to 6", "Tools, Resources, Prompts, Tasks, Server, Messages"],
  ["/", "Filter the list"],
  ["m", "Search the messages"],
  ["↑ ↓", "Move in a list, or among the messages"],
  ["Enter", "Choose, or unfold a message"],
  ["Ctrl+Enter", "Call, read, get, send"],
  ["c", "Cancel what runs in what is shown"],
  ["r", "Reconnect"],
  ["l", "Load the list again"],
  ["q", "Answer the question that waits"],
  ["e", "Export the messages"],
  ["?", "This list"],
];

function help() {
  if (dialog.open) return;
  dialog.dataset.of = "help";
  fill(
    dialog,
    h("h2", { id: "dialog-title" }, "Keyboard"),
    h(
      "table",
      { class: "keys" },
      h(
        "tbody",
        null,
        KEYS.map(([key, what]) => h("tr", null, h("th", { scope: "row" }, h("kbd", null, key)), h("td", null, what))),
      ),
    ),
    button("Close", () => dialog.close(), { class: "primary" }),
  );
  dialog.showModal();
}
at("help").addEventListener("click", help);

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !dialog.open) {
    const own = document.activeElement?.closest("form")?.querySelector(".run") ?? panel.querySelector(".run");
    if (own && !own.disabled) {
      event.preventDefault();
      own.click();
    }
    return;
  }
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const view = parts[current].view;
  const actions = {
    "?": help,
    "/": () => view?.filter.focus(),
    m: () => at("log-search").focus(),
    r: () => {
      if (!at("reconnect").disabled) reconnect();
    },
    c: () => [...panel.querySelectorAll(".cancel")].find((own) => !own.hidden)?.click(),
    l: () => view?.load(),
    q: () => at("waiting").click(),
    e: () => at("export").click(),
  };
  const number = names[Number(event.key) - 1];
  const action = number
    ? () => {
        choose(number);
        if (number !== "messages") at(`tab-${number}`).focus();
      }
    : Object.hasOwn(actions, event.key)
      ? actions[event.key]
      : null;
  if (!action) return;
  event.preventDefault();
  action();
});

log.make(at("log"));
choose("tools", true);
listen();
