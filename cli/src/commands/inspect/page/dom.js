// Elements. What a server says is only ever put in as text.

const CONTROL =
  /(?![\t\n])\p{Cc}|[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Makes letters visible that would act, change the order of the others, or hide a text from people. */
export function shown(text) {
  return String(text).replace(CONTROL, (letter) => {
    const code = letter.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** The same on one line, of this length at most. */
export function line(text, most = 200) {
  const one = shown(
    String(text)
      .slice(0, most + 1)
      .replace(/\s+/g, " "),
  );
  return one.length > most ? `${one.slice(0, most)}…` : one;
}

/** An element. Properties that begin with `on` are listeners, `false` and `null` leave an attribute out. */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "open") element[name] = value;
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : shown(child));
  }
}

/** Puts these in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

export const button = (text, onclick, more) => h("button", { type: "button", onclick, ...more }, text);

/** A text that may be long: its beginning, and the rest on request. */
export function long(text, most = 4000, name = "pre") {
  text = String(text);
  const element = h(name, { class: "text", tabindex: name === "pre" ? "0" : null });
  element.append(shown(text.slice(0, most)));
  if (text.length <= most) return element;
  let at = most;
  const more = button(
    `Show more of ${size(text.length)}`,
    () => {
      const next = Math.min(text.length, at + 200_000);
      element.insertBefore(document.createTextNode(shown(text.slice(at, next))), more);
      at = next;
      if (at === text.length) more.remove();
    },
    { class: "more" },
  );
  element.append(more);
  return element;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export function time(ms) {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(2)} s`;
}

let counter = 0;
export const unique = (prefix) => `${prefix}-${++counter}`;

/** The address of a page that may be opened; null for anything else. */
export function page(text) {
  // Browsers read a backslash as a slash, and leave out other letters: the host would be another one than it seems.
  if (typeof text !== "string" || !/^https?:\/\//.test(text) || /[\\\s]|\p{Cc}/u.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Moves the focus among these elements with the arrows, Home and End. */
export function arrows(event, elements, vertical = true) {
  const keys = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  const at = elements.indexOf(document.activeElement);
  const to = { [keys[0]]: at - 1, [keys[1]]: at + 1, Home: 0, End: elements.length - 1 }[event.key];
  if (to === undefined || at < 0 || !elements[to]) return null;
  event.preventDefault();
  elements[to].focus();
  return elements[to];
}
