/** JSON text that every receiver can read. */

/** What a backslash begins in JSON text: a whole character in two escapes, half of one, anything else. */
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
