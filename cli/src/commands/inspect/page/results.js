// Results: their content, and errors.

import { button, h, line, long, page, size } from "./dom.js";
import { folded, pretty, prettyValue } from "./json.js";
import { tell } from "./server.js";

const IMAGE = /^image\/[a-z0-9.+-]+$/i;
const AUDIO = /^audio\/[a-z0-9.+-]+$/i;
const BASE64 = /^[A-Za-z0-9+/=_\s-]*$/;

/** Media as data, or nothing where it is none. */
function media(data, mime, name) {
  if (typeof data !== "string" || typeof mime !== "string" || !BASE64.test(data)) return null;
  const src = `data:${mime};base64,${data.replace(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/")}`;
  if (IMAGE.test(mime)) return h("img", { src, alt: line(name, 100), class: "media" });
  if (AUDIO.test(mime)) return h("audio", { src, controls: true, "aria-label": line(name, 100) });
  return null;
}

function save(name, data, isBase64) {
  return button(
    `Save (${size(isBase64 ? Math.floor(data.length * 0.75) : data.length)})`,
    () => {
      const bytes = isBase64 ? Uint8Array.from(atob(data.replace(/\s/g, "")), (letter) => letter.charCodeAt(0)) : data;
      // As bytes: the browser is not to open it.
      const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
      h("a", { href: url, download: line(name, 80).replace(/[^\w.-]+/g, "_") || "content" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    },
    { class: "quiet" },
  );
}

/** The content of a resource. */
export function contents(entry) {
  if (!entry || typeof entry !== "object") return prettyValue(entry);
  const mime = typeof entry.mimeType === "string" ? entry.mimeType : "";
  const head = h("p", { class: "facts" }, line(entry.uri ?? "", 300), mime ? ` ${line(mime, 100)}` : "");
  if (typeof entry.text === "string") {
    return h(
      "div",
      { class: "block" },
      head,
      /json/.test(mime) ? maybeJson(entry.text) : long(entry.text),
      save(entry.uri, entry.text, false),
    );
  }
  if (typeof entry.blob === "string") {
    const shown =
      media(entry.blob, mime, entry.uri) ?? h("p", null, `${size(Math.floor(entry.blob.length * 0.75))} of bytes`);
    return h(
      "div",
      { class: "block" },
      head,
      shown,
      BASE64.test(entry.blob) ? save(entry.uri, entry.blob, true) : null,
    );
  }
  return h("div", { class: "block" }, head, prettyValue(entry));
}

function maybeJson(text) {
  try {
    return prettyValue(JSON.parse(text));
  } catch {
    return long(text);
  }
}

/** A block of content. */
export function block(content) {
  const notes = content?.annotations
    ? h("p", { class: "facts" }, line(JSON.stringify(content.annotations), 300))
    : null;
  switch (content?.type) {
    case "text":
      return h("div", { class: "block" }, notes, long(content.text ?? ""));
    case "image":
    case "audio":
      return h(
        "div",
        { class: "block" },
        notes,
        media(content.data, content.mimeType, content.type) ?? prettyValue(content),
      );
    case "resource":
      return h("div", { class: "block" }, notes, contents(content.resource));
    case "resource_link":
      return h(
        "div",
        { class: "block" },
        notes,
        h(
          "p",
          null,
          line(content.title ?? content.name ?? "", 200),
          " ",
          h("code", null, line(content.uri ?? "", 300)),
          " ",
          button("Read", () => tell("read", content.uri), { class: "quiet" }),
        ),
        content.description ? long(content.description, 1000, "p") : null,
      );
    default:
      return h("div", { class: "block" }, prettyValue(content));
  }
}

/** The result of a tool. */
export function toolResult(result, text) {
  const parts = [];
  if (result?.isError) parts.push(h("p", { class: "badge bad" }, "The tool says that it failed"));
  for (const content of Array.isArray(result?.content) ? result.content.slice(0, 500) : []) parts.push(block(content));
  if (result?.structuredContent !== undefined)
    parts.push(h("h4", null, "Structured content"), prettyValue(result.structuredContent));
  parts.push(folded("Whole result", () => pretty(text)));
  return parts;
}

/** The messages of a prompt. */
export function promptResult(result, text) {
  const messages = Array.isArray(result?.messages) ? result.messages.slice(0, 500) : [];
  const shown = messages.map((message) =>
    h(
      "div",
      { class: "message" },
      h("h4", null, line(message?.role ?? "?", 40)),
      (Array.isArray(message?.content) ? message.content : [message?.content]).map(block),
    ),
  );
  return [
    result?.description ? long(result.description, 1000, "p") : null,
    shown,
    folded("Whole result", () => pretty(text)),
  ];
}

export function resourceResult(result, text) {
  const all = Array.isArray(result?.contents) ? result.contents : [];
  return [all.slice(0, 200).map(contents), folded("Whole result", () => pretty(text))];
}

/** A button that opens a page after saying which. */
export function visit(text, opened) {
  const url = page(text);
  if (!url)
    return h(
      "p",
      { class: "badge bad" },
      "Its address is no page that can be opened: ",
      h("code", null, line(text, 300)),
    );
  return h(
    "div",
    { class: "visit" },
    h("p", null, "Host: ", h("strong", null, line(url.host, 300))),
    h("p", null, h("code", { class: "wrap" }, line(text, 4000))),
    button("Open the page", () => {
      window.open(url.href, "_blank", "noopener,noreferrer");
      opened?.();
    }),
  );
}

/** An error of a request. */
export function failure(error) {
  const parts = [
    h(
      "p",
      { class: "badge bad" },
      error.code !== undefined && error.code !== null ? `Error ${error.code}: ` : "Error: ",
      long(error.message ?? "", 2000, "span"),
    ),
  ];
  for (const asked of Array.isArray(error.data?.elicitations) ? error.data.elicitations.slice(0, 20) : []) {
    parts.push(
      h(
        "div",
        { class: "block" },
        long(asked?.message ?? "", 1000, "p"),
        visit(asked?.url),
        h("p", { class: "about" }, "Then try again."),
      ),
    );
  }
  if (error.data !== undefined && error.data !== null)
    parts.push(folded("Data of the error", () => prettyValue(error.data)));
  return parts;
}
