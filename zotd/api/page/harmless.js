// Escapes characters with which texts of models, tools or other people could hide or reorder what is next to them, like
// zotd/sanitize.py does for terminals, with the same table.

import { COLOURS, HIDDEN } from "./hidden.js";

// Longest text displayed: twice what a model writes at once; a tool's result may have megabytes.
export const SHOWN_CHARS = 100_000;

/** Replaces each character that is invisible or affects others by its code; newlines are kept. */
export function harmless(text) {
  const lines = text.replace(COLOURS, "").replaceAll("\r\n", "\n");
  return lines.replace(HIDDEN, (characters) => [...characters].map(shown).join(""));
}

/** Cuts text to `limit` characters, and says how much was left out. */
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
