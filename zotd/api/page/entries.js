// What a conversation shows, in order: entries, made of stored messages. Pure.
//
//   {key, kind: "user", text, images, sender, seq}
//   {key, kind: "reply", text, open, seq}            open: more of it is coming
//   {key, kind: "thought", text, open}
//   {key, kind: "tool", id, name, args, written, progress, result, state, seq}
//                                                     state: writing, running, done, cut (it will have no result)
//   {key, kind: "note", level, text, source}
//
// `seq` is that of the event that showed it. A call and its result, which are two messages, are one entry.

import { cut } from "./harmless.js";

/** All text of a message or a result. */
export function textOf(content) {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** How many images it has. */
export function imagesIn(content) {
  return content.filter((block) => block.type === "image").length;
}

/** A call that is being written, runs, or has been answered; `known` is what is known of it already. */
export function toolEntry(id, known) {
  const nothing = { name: "tool", args: {}, written: 0, progress: "", result: null, state: "running" };
  return { key: `t${id}`, kind: "tool", id, ...nothing, ...known };
}

/** What a `tool_result`, of a message or of an event, adds to its call. */
export function answered({ content, is_error: isError = false, extension = "" }) {
  const result = { text: cut(textOf(content)), images: imagesIn(content), isError, extension };
  return { result, state: "done", progress: "" };
}

/** A command that a person runs or has run; `content` is its output, null while it runs. */
export function shellEntry(shell, content, seq) {
  const known = { name: shell.context ? "!" : "!!", args: { command: shell.command }, seq };
  if (content === null) return toolEntry(shell.id, known);
  const isError = shell.exit !== 0;
  return toolEntry(shell.id, { ...known, ...answered({ content, is_error: isError }) });
}

/** Messages as entries; `isRunning`: calls without a result may still get one. */
export function entriesOf(messages, isRunning) {
  const entries = messages.flatMap((message) => ofMessage(message));
  const joined = withResults(entries);
  return isRunning ? joined : joined.map((entry) => (entry.state === "running" ? { ...entry, state: "cut" } : entry));
}

/** Older entries before those that are known; what both have is there once. */
export function joinedBefore(older, known) {
  const keys = new Set(known.filter((entry) => entry.kind !== "tool").map(identity));
  const calls = new Map(known.filter((entry) => entry.kind === "tool").map((entry) => [entry.key, entry]));
  const before = older.filter((entry) => !keys.has(identity(entry)) && !calls.get(entry.key)?.name);
  return withResults([...before, ...known]);
}

// The key of an entry that grew from deltas was made before its `seq` was known.
function identity(entry) {
  return entry.seq === undefined ? entry.key : `${entry.kind}${entry.seq}`;
}

function ofMessage(message) {
  const { role, content, seq, shell } = message;
  if (shell) return [shellEntry(shell, content, seq)];
  const text = cut(textOf(content));
  if (role === "user") return [{ key: `m${seq}`, kind: "user", text, images: imagesIn(content), sender: "", seq }];
  if (role === "tool") return content.map((block) => orphan(block, seq));
  const calls = content.filter((block) => block.type === "tool_call");
  const entries = calls.map(({ id, name, args }) => toolEntry(id, { name, args, seq }));
  return text ? [{ key: `m${seq}`, kind: "reply", text, open: false, seq }, ...entries] : entries;
}

// A result whose call stands in an older message: it has no name until that is there.
function orphan(block, seq) {
  return toolEntry(block.call_id, { name: "", ...answered(block), seq });
}

function withResults(entries) {
  const results = new Map(entries.filter((entry) => entry.name === "").map((entry) => [entry.key, entry]));
  const called = new Set(entries.filter((entry) => entry.kind === "tool" && entry.name).map((entry) => entry.key));
  return entries
    .filter((entry) => entry.name !== "" || !called.has(entry.key))
    .map((entry) => {
      const found = entry.kind === "tool" && entry.name && entry.result === null && results.get(entry.key);
      return found ? { ...entry, result: found.result, state: "done" } : entry;
    });
}
