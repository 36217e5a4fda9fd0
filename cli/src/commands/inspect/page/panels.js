// Tasks, and the server itself.

import { button, fill, h, line, long, unique } from "./dom.js";
import { folded, pretty, prettyValue, problem } from "./json.js";
import { failure, toolResult } from "./results.js";
import { events, has, known, post, start } from "./server.js";
import { runner } from "./views.js";

const TASKS = 500;

// Tasks

const tasks = new Map();
const rows = h("tbody");
const taskResult = h("div", { class: "result", "aria-live": "polite" });
const taskNote = h("p", { class: "note", role: "status" });

function remember(task) {
  const id = String(task.taskId);
  tasks.set(id, { ...tasks.get(id), ...task, taskId: id });
  if (tasks.size > TASKS) tasks.delete(tasks.keys().next().value);
  drawTasks();
}

async function ofTask(what, id) {
  const done = await start(what, id).done;
  if (done.error) return fill(taskResult, h("h4", null, `Task ${line(id, 100)}`), failure(done.error));
  if (done.cancelled) return;
  if (what === "task-result")
    fill(taskResult, h("h4", null, `Result of ${line(id, 100)}`), toolResult(done.result, done.text));
  else remember(done.result);
}

function drawTasks() {
  fill(
    rows,
    [...tasks.values()].reverse().map((task) =>
      h(
        "tr",
        null,
        h("th", { scope: "row" }, h("code", null, line(task.taskId, 60))),
        h("td", null, line(task.tool ?? "", 60)),
        h(
          "td",
          null,
          line(task.status ?? "", 40).replaceAll("_", " "),
          task.statusMessage ? `: ${line(task.statusMessage, 200)}` : "",
        ),
        h(
          "td",
          null,
          button("Status", () => ofTask("task-status", task.taskId), { class: "quiet" }),
          " ",
          button("Result", () => ofTask("task-result", task.taskId), { class: "quiet" }),
          " ",
          button("Cancel", () => ofTask("task-cancel", task.taskId), { class: "quiet" }),
        ),
      ),
    ),
  );
}

async function listTasks() {
  if (!has("tasks.list")) {
    taskNote.textContent =
      "The server does not list its tasks; those that were started here, or that you name, are shown.";
    return;
  }
  const done = await start("tasks").done;
  if (done.error) taskNote.textContent = line(done.error.message, 300);
  else {
    taskNote.textContent = `${done.result?.length ?? 0} tasks at the server`;
    for (const task of done.result ?? []) remember(task);
  }
}

export function tasksPanel() {
  const id = h("input", { type: "text", "aria-label": "Id of a task", placeholder: "Id of a task" });
  const look = h(
    "form",
    {
      class: "bar",
      onsubmit: (event) => {
        event.preventDefault();
        if (id.value) ofTask("task-status", id.value.trim());
      },
    },
    id,
    h("button", { type: "submit" }, "Look"),
    button("List", listTasks),
  );
  const table = h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ["Task", "Tool", "Status", "Actions"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    rows,
  );
  return {
    element: h(
      "div",
      { class: "wide" },
      h("h3", null, "Tasks"),
      look,
      taskNote,
      h("div", { class: "table" }, table),
      taskResult,
    ),
    load: listTasks,
  };
}

events.addEventListener("task", ({ detail }) => {
  remember(detail);
  ofTask("task-status", detail.taskId);
});
events.addEventListener("log", ({ detail }) => {
  if (detail.from !== "server" || !/^notifications\/tasks(\/status)?$/.test(detail.method ?? "")) return;
  try {
    const { params } = JSON.parse(detail.text);
    if (params?.taskId && tasks.has(String(params.taskId)))
      remember({ taskId: params.taskId, status: params.status, statusMessage: params.statusMessage });
  } catch {
    // The log shows it as it came.
  }
});

// The server

const facts = h("div");
const calls = h("ul", { class: "plain" });
const listens = h("ul", { class: "plain" });
const roots = h("textarea", { rows: "3", class: "code", spellcheck: "false", "aria-label": "Roots, one on each line" });

function drawFacts() {
  const { state } = known;
  const pairs = [
    ["Target", state.target],
    ["Status", state.why ? `${state.status}: ${state.why}` : state.status],
    ["Name", state.server?.name],
    ["Title", state.server?.title],
    ["Version", state.server?.version],
    ["Revision", state.revision],
    ["Transport", state.transport ? `${state.transport}${state.hasSession ? ", with a session" : ""}` : null],
    ["Connection", state.connection],
    ["tricorn", state.version],
  ];
  fill(
    facts,
    h(
      "dl",
      null,
      pairs
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => [h("dt", null, name), h("dd", null, line(value, 500))]),
    ),
    state.instructions ? [h("h4", null, "Instructions"), long(state.instructions)] : null,
    state.capabilities ? [h("h4", null, "Capabilities of the server"), prettyValue(state.capabilities)] : null,
    state.opening ? folded("What it said when it was met", () => prettyValue(known.state.opening)) : null,
  );
}

function drawCalls() {
  fill(
    calls,
    known.calls.length
      ? known.calls.map((call) =>
          h(
            "li",
            null,
            line(call.what, 100),
            " ",
            button("Cancel", () => post("cancel", { call: call.call }).catch(() => {}), { class: "quiet" }),
          ),
        )
      : h("li", { class: "note" }, "nothing"),
  );
}

function listenForm() {
  const boxes = ["tools", "prompts", "resources"].map((name) => ({ name, box: h("input", { type: "checkbox" }) }));
  const uris = h("input", {
    type: "text",
    "aria-label": "URIs of resources",
    placeholder: "URIs of resources, with blanks between",
  });
  const ids = h("input", {
    type: "text",
    "aria-label": "Ids of tasks",
    placeholder: "Ids of tasks, with blanks between",
  });
  const words = (input) => input.value.split(/\s+/).filter(Boolean);
  return h(
    "form",
    {
      class: "bar",
      onsubmit: async (event) => {
        event.preventDefault();
        const filter = {};
        for (const { name, box } of boxes) if (box.checked) filter[`${name}ListChanged`] = true;
        if (words(uris).length) filter.resourceSubscriptions = words(uris);
        if (words(ids).length) filter.taskIds = words(ids);
        const work = start("listen", "", { filter });
        const count = h("span", null, "0 changes");
        const item = h(
          "li",
          null,
          h("code", null, line(JSON.stringify(filter), 200)),
          " ",
          count,
          " ",
          button("End", () => work.cancel(), { class: "quiet" }),
        );
        let changes = 0;
        const hear = ({ detail }) => {
          if (detail.call !== work.call) return;
          changes++;
          count.textContent = `${changes} ${changes === 1 ? "change" : "changes"}, the last: ${line(detail.change.method, 80)} ${line(detail.change.params?.uri ?? "", 100)}`;
        };
        events.addEventListener("change", hear);
        listens.append(item);
        const done = await work.done;
        events.removeEventListener("change", hear);
        if (done.error) fill(item, failure(done.error));
        else item.remove();
      },
    },
    boxes.map(({ name, box }) => h("label", { class: "choice" }, box, ` list of ${name}`)),
    uris,
    ids,
    h("button", { type: "submit" }, "Listen"),
  );
}

function logLevel() {
  const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
  const note = h("span", { class: "note", role: "status" });
  const select = h(
    "select",
    {
      "aria-label": "Level of the log",
      onchange: async () => {
        if (!select.value) return;
        const done = await start("request", "logging/setLevel", { params: JSON.stringify({ level: select.value }) })
          .done;
        note.textContent = done.error ? line(done.error.message, 300) : "asked";
      },
    },
    h("option", { value: "" }, "choose…"),
    levels.map((level) => h("option", { value: level }, level)),
  );
  return h("div", { class: "bar" }, select, note);
}

function rawRequest() {
  const method = h("input", {
    type: "text",
    class: "code",
    value: "ping",
    spellcheck: "false",
    "aria-label": "Method",
  });
  const id = unique("params");
  const params = h("textarea", { rows: "4", class: "code", spellcheck: "false", value: "{}", id });
  const wrong = h("p", { class: "problem", role: "alert" });
  const work = runner({
    label: "Send",
    begin(progress) {
      const bad = params.value.trim() ? problem(params.value) : null;
      wrong.textContent = bad ?? "";
      if (bad) {
        params.focus();
        return null;
      }
      return start("request", method.value.trim(), { params: params.value.trim() || "{}", progress });
    },
    show: (_, text) => pretty(text),
  });
  return h(
    "form",
    { onsubmit: (event) => event.preventDefault() },
    h("div", { class: "field" }, method),
    h("div", { class: "field" }, h("label", { for: id }, "Parameters, JSON"), params, wrong),
    work.element,
  );
}

function rootsForm() {
  const note = h("span", { class: "note", role: "status" });
  return h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        const list = roots.value
          .split("\n")
          .map((text) => text.trim())
          .filter(Boolean);
        try {
          await post(
            "roots",
            list.map((text) => (text.startsWith("{") ? JSON.parse(text) : text)),
          );
          note.textContent = "set";
        } catch (error) {
          note.textContent = line(error.message, 300);
        }
      },
    },
    roots,
    h("p", { class: "about" }, "Paths or file:// URIs, one on each line; the server is told when they change."),
    h("div", { class: "bar" }, h("button", { type: "submit" }, "Set the roots"), note),
  );
}

export function serverPanel() {
  const section = (title, ...parts) => h("section", null, h("h3", null, title), parts);
  return {
    element: h(
      "div",
      { class: "wide" },
      section("Server", facts),
      section("What goes on", calls),
      section("Listen to changes", listenForm(), listens),
      section("Roots", rootsForm()),
      section("Level of the log", logLevel()),
      section("Any request", rawRequest()),
    ),
    load() {},
  };
}

events.addEventListener("state", drawFacts);
events.addEventListener("calls", drawCalls);
events.addEventListener("roots", ({ detail }) => {
  if (document.activeElement !== roots)
    roots.value = detail.map((root) => (typeof root === "string" ? root : JSON.stringify(root))).join("\n");
});
events.addEventListener("state", ({ detail }) => {
  if (detail.status === "connecting") {
    tasks.clear();
    drawTasks();
  }
});
