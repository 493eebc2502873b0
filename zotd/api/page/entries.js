// Converts stored messages into the entries that a conversation shows, in order. Pure.
//
//   {key, kind: "user", text, images, sender, seq}
//   {key, kind: "reply", text, open, seq}            open: it is still arriving
//   {key, kind: "thought", text, open}
//   {key, kind: "tool", id, name, args, written, progress, result, state, seq, until}
//                                                     state: writing, running, done, cut (it will get no result)
//                                                     until: `seq` of the message with the result, if it is another one
//   {key, kind: "note", level, text, source}
//
// `seq` is that of the event with the message. A call and its result are two messages but one entry.

import { cut } from "./harmless.js";

/** All text of a message or a result. */
export function textOf(content) {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** Whether the message with this `seq` is (a part of) the entry. */
export function isOf(entry, seq) {
  return entry.seq === seq || entry.until === seq;
}

/** Number of images. */
export function imagesIn(content) {
  return content.filter((block) => block.type === "image").length;
}

/** A call that is arriving, running or complete; `known` is the entry so far. */
export function toolEntry(id, known) {
  const nothing = { name: "tool", args: {}, written: 0, progress: "", result: null, state: "running" };
  return { key: `t${id}`, kind: "tool", id, ...nothing, ...known };
}

/** The fields that a `tool_result`, in a message or an event, adds to its call. */
export function answered({ content, is_error: isError = false, extension = "" }) {
  const result = { text: cut(textOf(content)), images: imagesIn(content), isError, extension };
  return { result, state: "done", progress: "" };
}

/** A user's command; `content` is its output, null while it is running. */
export function shellEntry(shell, content, seq) {
  const known = { name: shell.context ? "!" : "!!", args: { command: shell.command }, seq };
  if (content === null) return toolEntry(shell.id, known);
  const isError = shell.exit !== 0;
  return toolEntry(shell.id, { ...known, ...answered({ content, is_error: isError }) });
}

/** Converts messages into entries; `isRunning`: calls without a result may still get one. */
export function entriesOf(messages, isRunning) {
  const entries = messages.flatMap((message) => ofMessage(message));
  const joined = withResults(entries);
  return isRunning ? joined : joined.map((entry) => (entry.state === "running" ? { ...entry, state: "cut" } : entry));
}

/** Prepends older entries, without duplicates. */
export function joinedBefore(older, known) {
  const keys = new Set(known.filter((entry) => entry.kind !== "tool").map(identity));
  const calls = new Map(known.filter((entry) => entry.kind === "tool").map((entry) => [entry.key, entry]));
  const before = older.filter((entry) => !keys.has(identity(entry)) && !calls.get(entry.key)?.name);
  return withResults([...before, ...known]);
}

// An entry that grew from deltas got its key before its `seq` was known.
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

// The call of this result is in an older message, so its name is not known yet.
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
      return found ? { ...entry, result: found.result, state: "done", until: found.seq } : entry;
    });
}
