// Renders entries of a conversation.

import { changesOf, diffRows } from "./diff.js";
import { element, fill } from "./elements.js";
import { cut } from "./harmless.js";
import { showProse } from "./prose.js";

// Lines of a result that are shown while it is collapsed.
const CARD_LINES = 8;

// The most informative argument of a call, by tool.
const SUBJECTS = {
  ...{ bash: "command", "!": "command", "!!": "command" },
  ...{ read: "path", write: "path", edit: "path" },
  ...{ grep: "pattern", glob: "pattern" },
};

// Longest summary of a call; more does not fit on a line.
const SUBJECT_CHARS = 300;

const OUTCOMES = { writing: "being written", running: "running", done: "done", cut: "no result" };

/**
 * Renders an entry into its list item, which may contain an earlier version of it. `pictures` makes the elements of its
 * images.
 */
export function showEntry(item, entry, pictures) {
  item.className = `entry ${entry.kind}`;
  SHOWS[entry.kind](item, entry, pictures);
}

/** Renders text, as a diff if it is one. */
export function verbatim(text, label) {
  const rows = diffRows(text);
  return output(label, ...(rows === null ? [text] : rows.map(rowElement)));
}

/** The summary of a call's arguments, on one line. */
export function subject(name, args) {
  const said = args[SUBJECTS[name]];
  const values = Object.values(args).filter((value) => ["string", "number", "boolean"].includes(typeof value));
  const text = typeof said === "string" ? said : values.map((value) => String(value).slice(0, SUBJECT_CHARS)).join(" ");
  return text.slice(0, SUBJECT_CHARS).replace(/\s+/g, " ").trim();
}

const SHOWS = {
  user: (item, { text, images, sender, seq }, pictures) => {
    const from = element("span", { class: "from" }, sender || "You");
    fill(item, from, text ? element("p", { dir: "auto" }, text) : null, picturesElement(pictures, seq, images));
  },
  reply: (item, { text, open }) => {
    item.setAttribute("aria-busy", String(open)); // screen readers read it when it is complete
    showProse(item, cut(text));
  },
  thought: (item, { text, open }) => {
    if (!item.firstElementChild) fill(item, element("details", {}, element("summary"), element("p", { dir: "auto" })));
    const [summary, words] = item.firstElementChild.children;
    item.setAttribute("aria-live", "off");
    fill(summary, open ? "Thinking…" : "Thought");
    fill(words, cut(text));
  },
  note: (item, { level, text, source }) => {
    item.classList.add(level);
    const from = source ? element("span", { class: "from" }, source) : null;
    fill(item, from, element("p", { dir: "auto" }, text));
  },
  tool: showTool,
};

function showTool(item, entry, pictures) {
  const { name, args, state, result } = entry;
  const failed = result?.isError ?? false;
  item.dataset.state = failed ? "failed" : state;
  item.setAttribute("aria-busy", String(state !== "done" && state !== "cut"));
  fill(
    item,
    element(
      "p",
      { class: "call" },
      element("span", { class: "mark", role: "img", "aria-label": failed ? "failed" : OUTCOMES[state] }),
      element("strong", {}, name || "tool"),
      element("span", { class: "subject", dir: "auto" }, subject(name, args)),
      element("span", { class: "fact" }, factOf(entry, failed)),
    ),
    ...body(entry, pictures),
  );
}

function factOf({ state, written, result }, failed) {
  if (state === "writing") return `${written.toLocaleString("en")} characters`;
  if (state === "cut") return "no result";
  if (failed) return "failed";
  return result?.extension ? `(${result.extension})` : "";
}

function body({ name, args, progress, result, seq, until = seq }, pictures) {
  if (result === null) return [written(name, args), progress ? output("Output so far", lastLines(progress)) : null];
  const rows = diffRows(result.text);
  const changes = rows && folded(changesOf(rows).map(rowElement), "Changes");
  const asked = result.isError ? null : written(name, args);
  const shown = changes ?? asked ?? foldedText(result.text, `Result of ${name}`);
  return [shown, picturesElement(pictures, until, result.images)];
}

/** The text that a call writes into a file, if its arguments contain it. */
function written(name, args) {
  return name === "write" && typeof args.content === "string" ? foldedText(args.content, "New content") : null;
}

function foldedText(text, label) {
  const trimmed = cut(text).replace(/^\n+/, "").trimEnd();
  const lines = trimmed ? trimmed.split("\n") : [];
  return folded(lines.map((line) => `${line}\n`), label);
}

/** The first lines, and a button for the others; null if there are none. */
function folded(lines, label) {
  if (lines.length === 0) return null;
  const box = output(label, ...lines.slice(0, CARD_LINES));
  const more = lines.length - CARD_LINES;
  if (more <= 0) return box;
  const open = () => {
    fill(box, ...(typeof lines[0] === "string" ? [lines.join("")] : lines));
    button.remove();
    box.focus();
  };
  const words = `${more.toLocaleString("en")} more lines`;
  const button = element("button", { type: "button", class: "more", onclick: open }, words);
  return element("div", {}, box, button);
}

function output(label, ...lines) {
  return element("pre", { class: "output", tabindex: "0", role: "group", "aria-label": label }, ...lines);
}

/** Text as a terminal shows it: a carriage return overwrites the line before it. */
function lastLines(text) {
  const lines = text.trimEnd().split("\n").slice(-CARD_LINES);
  return lines.map((line) => line.replace(/\r$/, "").split("\r").at(-1)).join("\n");
}

function rowElement({ sign, text }) {
  const kind = { "+": "added", "-": "removed", "@": "around" }[sign] ?? "kept";
  return element("span", { class: `row ${kind}` }, `${sign === "@" ? "" : `${sign} `}${text}\n`);
}

function picturesElement(pictures, seq, count) {
  return count > 0 ? element("div", { class: "pictures" }, ...pictures.of(seq, count)) : null;
}
