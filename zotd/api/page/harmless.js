// What models, tools and other people have written, made unable to hide or to turn round what is beside it: what
// zotd/sanitize.py does for terminals, with its table.

import { COLOURS, HIDDEN } from "./hidden.js";

// Longest text that is shown of one thing. Twice what a model writes at once; a tool's result may have megabytes.
export const SHOWN_CHARS = 100_000;

/** The same text with each character that does more, or less, than to be seen shown as its code; newlines stay. */
export function harmless(text) {
  const lines = text.replace(COLOURS, "").replaceAll("\r\n", "\n");
  return lines.replace(HIDDEN, (characters) => [...characters].map(shown).join(""));
}

/** At most `limit` characters of it, with a word about what is left out. */
export function cut(text, limit = SHOWN_CHARS) {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n… ${(text.length - limit).toLocaleString("en")} more characters`;
}

function shown(character) {
  const code = character.codePointAt(0);
  if (code < 0x20 || code === 0x7f) return "^" + String.fromCharCode(code ^ 0x40);
  if (code >= 0xd800 && code < 0xe000) return "\ufffd";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}
