// What models, tools and other people have written, made unable to hide or to turn round what is beside it.

// Longest text that is shown of one thing. Twice what a model writes at once; a tool's result may have megabytes.
export const SHOWN_CHARS = 100_000;

const COLOURS = /\x1b\[[\d;:]*m/g;

// Control characters but newline and tab; what changes the direction of writing; what shows nothing at all. The joiners
// U+200C and U+200D stay: Persian words and emoji are made with them.
const HIDING = new RegExp(
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
    "\\ud800-\\udfff\\u{e0000}-\\u{e007f}]",
  "gu",
);

/** The same text with each character that does more, or less, than to be seen shown as its code; newlines stay. */
export function harmless(text) {
  const lines = text.replace(COLOURS, "").replaceAll("\r\n", "\n");
  return lines.replace(HIDING, (character) => shown(character.codePointAt(0)));
}

/** At most `limit` characters of it, with a word about what is left out. */
export function cut(text, limit = SHOWN_CHARS) {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n… ${(text.length - limit).toLocaleString("en")} more characters`;
}

function shown(code) {
  if (code < 0x20 || code === 0x7f) return "^" + String.fromCharCode(code ^ 0x40);
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}
