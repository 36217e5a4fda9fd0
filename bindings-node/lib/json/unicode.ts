/** Texts that every receiver can read. */

/** The escapes of JSON text: a whole character in two of them, half of one, anything else. */
const ESCAPES = /\\(?:ud[89ab]..\\ud[c-f]..|ud[89a-f]..|.)/g;

/**
 * As `JSON.stringify`, but U+FFFD stands for half a character (a lone surrogate), in names, too: that is no Unicode, and
 * would become an escape which other languages refuse.
 */
export function stringify(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  const text = JSON.stringify(value, replacer) as string | undefined;
  if (!text?.includes("\\ud")) return text as string;
  return text.replace(ESCAPES, (one) => (one.length === 6 ? "\ufffd" : one));
}

/** The most characters of a text that are shown. */
const SHOWN = 8192;

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about them
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** A text that may be a peer's as a terminal or a log can show it: no control characters, and not for ever. */
export function printable(text: string): string {
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}… (${text.length} characters)` : text;
  return shown.replace(CONTROL, (one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
