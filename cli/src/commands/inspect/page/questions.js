// Questions of the server: forms, pages to visit, answers in the place of a model.

import { button, fill, h, line, long, unique } from "./dom.js";
import { makeForm } from "./form.js";
import { folded, prettyValue, problem } from "./json.js";
import { block, visit } from "./results.js";
import { events, known, post } from "./server.js";

const dialog = document.getElementById("dialog");
const waiting = document.getElementById("waiting");
let open = null;
/** Questions that were put off. */
const later = new Set();

function answer(question, result) {
  const body =
    result === undefined ? `{"question":${question.question}}` : `{"question":${question.question},"result":${result}}`;
  close();
  later.add(question.question);
  post("answer", body).catch((error) => events.dispatchEvent(new CustomEvent("banner", { detail: error.message })));
}

const action = (question, name) => answer(question, JSON.stringify({ action: name }));

function frame(title, ...parts) {
  return h("div", { class: "question" }, h("h2", { id: "dialog-title", tabindex: "-1" }, title), parts);
}

function form(question) {
  const { params } = question;
  const fields = makeForm(params.requestedSchema, { label: "Content" });
  const element = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        const text = fields.text();
        if (text !== null) answer(question, `{"action":"accept","content":${text}}`);
      },
    },
    fields.element,
    h(
      "div",
      { class: "bar" },
      h("button", { type: "submit", class: "primary" }, "Accept"),
      button("Decline", () => action(question, "decline")),
      button("Cancel", () => action(question, "cancel")),
    ),
  );
  return frame("The server asks", long(params.message ?? "", 4000, "p"), element);
}

function url(question) {
  const { params } = question;
  return frame(
    "The server asks to visit a page",
    long(params.message ?? "", 4000, "p"),
    visit(params.url),
    h(
      "p",
      { class: "about" },
      "Accept says that you have agreed to open it; what happens there stays between you and that page.",
    ),
    h(
      "div",
      { class: "bar" },
      button("Accept", () => action(question, "accept"), { class: "primary" }),
      button("Decline", () => action(question, "decline")),
      button("Cancel", () => action(question, "cancel")),
    ),
  );
}

function sampling(question) {
  const { params } = question;
  const id = unique("answer");
  const text = h("textarea", { id, rows: "6" });
  const model = h("input", { type: "text", value: "human", id: `${id}-model` });
  const whole = h("textarea", { rows: "8", class: "code", "aria-label": "Whole result as JSON" });
  const wrong = h("p", { class: "problem", role: "alert" });
  const details = h(
    "details",
    {
      ontoggle: () => {
        if (details.open && !whole.value) whole.value = JSON.stringify(result(), null, 2);
      },
    },
    h("summary", null, "Answer with a whole result"),
    whole,
  );
  const result = () => ({
    role: "assistant",
    content: { type: "text", text: text.value },
    model: model.value || "human",
    stopReason: "endTurn",
  });
  const messages = (Array.isArray(params.messages) ? params.messages : [])
    .slice(0, 200)
    .map((message) =>
      h(
        "div",
        { class: "message" },
        h("h4", null, line(message?.role ?? "?", 40)),
        (Array.isArray(message?.content) ? message.content : [message?.content]).map(block),
      ),
    );
  const { messages: _, systemPrompt, ...rest } = params;
  const element = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        if (!details.open) return answer(question, JSON.stringify(result()));
        const bad = problem(whole.value);
        wrong.textContent = bad ?? "";
        if (!bad) answer(question, whole.value);
      },
    },
    h("div", { class: "field" }, h("label", { for: id }, "Your answer"), text),
    h("div", { class: "field" }, h("label", { for: `${id}-model` }, "Name of the model"), model),
    details,
    wrong,
    h(
      "div",
      { class: "bar" },
      h("button", { type: "submit", class: "primary" }, "Answer"),
      button("Refuse", () => answer(question)),
    ),
  );
  return frame(
    "The server asks a model",
    systemPrompt ? [h("h4", null, "System prompt"), long(systemPrompt)] : null,
    messages,
    folded("The rest of the request", () => prettyValue(rest)),
    element,
  );
}

function close() {
  open = null;
  if (dialog.open && dialog.dataset.of === "question") dialog.close();
}

function show(question) {
  open = question.question;
  later.delete(question.question);
  const make = question.method === "sampling/createMessage" ? sampling : question.params?.mode === "url" ? url : form;
  fill(
    dialog,
    make(question),
    h("p", { class: "hint" }, "Escape puts the question off; it waits in the line at the top."),
  );
  dialog.dataset.of = "question";
  if (!dialog.open) dialog.showModal();
  (dialog.querySelector("input, textarea, select") ?? dialog.querySelector("h2")).focus();
}

function next() {
  const first = known.questions.find((question) => !later.has(question.question));
  if (first && !dialog.open) show(first);
}

dialog.addEventListener("close", () => {
  if (dialog.dataset.of === "question" && open !== null) later.add(open);
  open = null;
  setTimeout(next);
});

waiting.addEventListener("click", () => {
  later.clear();
  if (known.questions.length && !dialog.open) show(known.questions[0]);
});

events.addEventListener("questions", ({ detail }) => {
  const count = detail.length;
  waiting.hidden = count === 0;
  waiting.textContent = count === 1 ? "1 question waits" : `${count} questions wait`;
  const numbers = new Set(detail.map((question) => question.question));
  for (const number of later) if (!numbers.has(number)) later.delete(number);
  // Answered in another page, or no longer wanted.
  if (open !== null && !numbers.has(open)) close();
  next();
});
