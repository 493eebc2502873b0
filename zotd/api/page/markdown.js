// Parses a small subset of Markdown into blocks of spans: headings, paragraphs, lists, quotes, fenced code; code, bold,
// emphasis and links within a line. Everything else stays plain text, so there is nothing to escape.
//
//     blocks("# Hi\n\nA `b`.")  ->  [{kind: "heading", level: 1, source: "# Hi", spans: [...]}, ...]
//
// `source` is the text of a block; while a reply grows, only blocks with a changed source have to be rendered again.

// No pattern can match a text in two ways, so the time is linear in its length, whatever a model writes.
const FENCE = /^\s*(`{3,}|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;

// One alternative for each kind of span.
const SPAN = new RegExp(
  [
    "(?<!`)(`{1,9})(?<code>[^`]+)\\1(?!`)",
    "\\*\\*(?<bold>[^*\\s](?:[^*]*[^*\\s])?)\\*\\*",
    "(?<![\\w*])\\*(?<emphasis>[^*\\s](?:[^*]*[^*\\s])?)\\*(?![\\w*])",
    "\\[(?<label>[^\\[\\]]+)\\]\\((?<target>[^()\\s]+)\\)",
    "(?<bare>https?://[^\\s<>\"'`()\\[\\]]+)",
  ].join("|"),
  "g",
);

// Punctuation after an address that belongs to the sentence.
const ENDING = /[.,;:!?*_~]{1,3}$/;

// Longer paragraphs are shown as plain text; they are generated data rather than prose.
const SPAN_CHARS = 20_000;

/** The blocks of a text, in order. An unclosed fence extends to the end. */
export function blocks(text) {
  const lines = text.split("\n");
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [block, next] = oneBlock(lines, at);
    found.push({ ...block, source: lines.slice(at, next).join("\n") });
    at = next;
  }
  return found;
}

/** The spans of a line: `{kind, text}`, and for a link `{kind: "link", text, address}`. */
export function spans(text) {
  if (text.length > SPAN_CHARS) return [{ kind: "text", text }];
  const found = [];
  let end = 0;
  for (const match of text.matchAll(SPAN)) {
    const span = spanOf(match);
    if (span === null) continue;
    if (match.index > end) found.push({ kind: "text", text: text.slice(end, match.index) });
    found.push(span);
    end = match.index + (span.length ?? match[0].length);
  }
  if (end < text.length) found.push({ kind: "text", text: text.slice(end) });
  return found;
}

/** Normalises `target` if it is an address that may be opened; null otherwise. */
export function address(target) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return null;
  }
  // `https://bank.example@evil.example` leads to the second host; such addresses are used only to deceive.
  if (!["http:", "https:"].includes(url.protocol) || url.username || url.password) return null;
  return url.href;
}

function oneBlock(lines, at) {
  const fence = FENCE.exec(lines[at]);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(lines[at]);
  if (heading) return [{ kind: "heading", level: heading[1].length, spans: spans(heading[2].trim()) }, at + 1];
  if (RULE.test(lines[at])) return [{ kind: "rule" }, at + 1];
  if (ITEM.test(lines[at])) return list(lines, at);
  if (QUOTE.test(lines[at])) return quote(lines, at);
  return paragraph(lines, at);
}

function fenced(lines, at, [, mark, info]) {
  const isClosing = (line) => line.trim().startsWith(mark) && !line.trim().replaceAll(mark[0], "");
  const language = info.trim().split(/\s/)[0];
  let end = at + 1;
  while (end < lines.length && !isClosing(lines[end])) end += 1;
  const code = lines.slice(at + 1, end).join("\n");
  return [{ kind: "code", language, text: code }, Math.min(end + 1, lines.length)];
}

function list(lines, at) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  const items = [];
  let end = at;
  for (; end < lines.length && lines[end].trim(); end += 1) {
    const item = ITEM.exec(lines[end]);
    if (FENCE.test(lines[end]) || HEADING.test(lines[end])) break;
    if (item && /\d/.test(item[2]) !== ordered && !item[1]) break;
    if (item) items.push({ depth: Math.min(Math.floor(item[1].length / 2), 5), mark: item[2], text: item[3] });
    else items[items.length - 1].text += " " + lines[end].trim();
  }
  const shown = items.map(({ depth, mark, text }) => ({ depth, mark, spans: spans(text) }));
  return [{ kind: "list", ordered, items: shown }, end];
}

function quote(lines, at) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const text = lines.slice(at, end).map((line) => QUOTE.exec(line)[1]);
  return [{ kind: "quote", spans: spans(text.join("\n")) }, end];
}

function paragraph(lines, at) {
  const begins = (line) => [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(line));
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines[end])) end += 1;
  return [{ kind: "paragraph", spans: spans(lines.slice(at, end).join("\n")) }, end];
}

function spanOf(match) {
  const { code, bold, emphasis, label, target, bare } = match.groups;
  if (code !== undefined) return { kind: "code", text: code };
  if (bold !== undefined) return { kind: "bold", text: bold };
  if (emphasis !== undefined) return { kind: "emphasis", text: emphasis };
  const wanted = bare === undefined ? target : bare.replace(ENDING, "");
  const found = address(wanted);
  const length = bare === undefined ? match[0].length : wanted.length;
  return found === null ? null : { kind: "link", text: label ?? "", address: found, length };
}
