// JSON as text: numbers, order and spelling stay as they came.

import { h, shown, size } from "./dom.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g;
/** Letters that are shown at once. */
const MOST = 200_000;

/** Lines of JSON text, indented, with the kinds of its tokens. */
export function pretty(text) {
  const pre = h("pre", { class: "json", tabindex: "0" });
  show(pre, text, MOST);
  return pre;
}

function show(pre, text, most) {
  pre.replaceChildren();
  let depth = 0;
  let plain = "";
  let last = "";
  const flush = () => {
    if (plain) pre.append(plain);
    plain = "";
  };
  const token = (kind, value) => {
    flush();
    pre.append(h("span", { class: kind }, value));
  };
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [value] = match;
    if (match.index > most) {
      flush();
      const more = h(
        "button",
        { type: "button", class: "more", onclick: () => show(pre, text, most * 10) },
        `Show more of ${size(text.length)}`,
      );
      pre.append("\n", more);
      return;
    }
    const closes = value === "}" || value === "]";
    if (closes) depth--;
    const opened = last === "{" || last === "[";
    if (opened && !closes) plain += `\n${"  ".repeat(depth)}`;
    else if (closes && !opened) plain += `\n${"  ".repeat(depth)}`;
    else if (last === ",") plain += `\n${"  ".repeat(depth)}`;
    else if (last === ":") plain += " ";
    if (value === "{" || value === "[") {
      plain += value;
      depth++;
    } else if (closes || value === "," || value === ":") {
      plain += value;
    } else if (value[0] === '"') {
      token(/^\s*:/.test(text.slice(TOKEN.lastIndex, TOKEN.lastIndex + 20)) ? "key" : "string", value);
    } else {
      token(/[-\d]/.test(value[0]) ? "number" : "literal", value);
    }
    last = value;
  }
  flush();
}

/** A value as such lines. */
export const prettyValue = (value) => pretty(JSON.stringify(value) ?? "null");

/** True if the text is JSON. */
export function problem(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return shown(error.message);
  }
}

/** Values that can be folded away. */
export function folded(title, make) {
  const details = h(
    "details",
    {
      ontoggle: () => {
        if (details.open && details.childElementCount === 1) details.append(make());
      },
    },
    h("summary", null, title),
  );
  return details;
}
