// (state, event or response) -> state: everything displayed of one session, as a value. Pure.
//
// The text of a step arrives up to three times: as deltas, as the partial text of a snapshot if this client attaches in
// the middle, and complete in `assistant_message`. It is one entry, and later texts replace earlier ones.

import { answered, entriesOf, imagesIn, joinedBefore, shellEntry, textOf, toolEntry } from "./entries.js";
import { cut } from "./harmless.js";

// Number of entries kept, about 30 turns. Older ones are requested from the daemon when needed.
export const NEWEST = 200;

// The same while the user reads older entries: as many as a phone renders without a noticeable pause.
export const MOST = 1_000;

// Length of the output of a running tool that is kept, from its end.
const PROGRESS_CHARS = 4_000;

/** The initial state. */
export const EMPTY = {
  session: null,
  entries: [],
  hasMore: false,
  passage: null, // {entries, hasMore} of an older part of the conversation that is shown instead of the newest one
  run: null, // {step, retry} while something runs
  snapshotRun: null, // the `run` of the last snapshot; it counts when everything before has been replayed
  queue: [],
  held: false,
  approvals: [],
  plan: null,
  jobs: [], // those that run, and the newest of those that do not
  usage: null,
  own: new Set(), // ids of this client's inputs and decisions, which are not reported as those of others
  made: 0, // entries that were given a key here
  isStale: false, // what is shown is no longer what was said: a new snapshot is needed
};

/** Applies the response to `attach`. A resumed one is followed by the missed events. */
export function attached(state, snapshot) {
  const { session, queue, held, approvals, usage, run, plan = null, jobs = [] } = snapshot;
  const now = { ...state, session, queue, held, approvals, usage, plan, jobs, snapshotRun: run, isStale: false };
  if (snapshot.mode === "resumed") return now;
  const entries = entriesOf(snapshot.messages, run !== null);
  const notes = snapshot.notes.map((note, at) => noteEntry(`s${at}`, note.level, note.message, note.extension));
  return { ...now, entries: [...entries, ...notes], hasMore: snapshot.has_more, run: runOf(run) };
}

/** The part of the conversation that is shown: {entries, hasMore}. */
export function displayed(state) {
  return state.passage ?? state;
}

/** Applies a page of `session.history` that precedes what is shown. */
export function withOlder(state, page) {
  const before = entriesOf(page.messages, false);
  const part = { entries: joinedBefore(before, displayed(state).entries), hasMore: page.has_more };
  return state.passage === null ? { ...state, ...part } : { ...state, passage: part };
}

/** Shows a page of `session.history` instead of the newest messages, which are kept. */
export function withPassage(state, page) {
  return { ...state, passage: { entries: entriesOf(page.messages, false), hasMore: page.has_more } };
}

/** Shows the newest messages again. */
export function withoutPassage(state) {
  return state.passage === null ? state : { ...state, passage: null };
}

/** The `before` for the next page of `session.history`; null if no entry has a `seq`. */
export function oldestSeq(state) {
  const first = displayed(state).entries.find((entry) => entry.seq !== undefined);
  // Inclusive, because the message of the oldest entry may have further entries; known ones are skipped.
  return first ? first.seq + 1 : null;
}

/** The newest `limit` entries. */
export function trimmed(state, limit) {
  if (state.entries.length <= limit) return state;
  return { ...state, entries: state.entries.slice(-limit), hasMore: true };
}

/** Records an input or a decision of this client. */
export function owned(state, id) {
  return { ...state, own: new Set([...state.own, id].slice(-100)) };
}

/** Applies an event that was not applied before; returns the same state if the event shows nothing. */
export function reduce(state, event) {
  return Object.hasOwn(STEPS, event.type) ? STEPS[event.type](state, event) : state;
}

// --- entries ---------------------------------------------------------------------------------------------------------

function noteEntry(key, level, text, source = "") {
  return { key, kind: "note", level, text: cut(text), source };
}

function added(state, entry) {
  const key = entry.key ?? `n${state.made}`;
  return { ...state, made: state.made + 1, entries: [...state.entries, { ...entry, key }] };
}

function noted(state, level, text, source = "") {
  return added(state, noteEntry(undefined, level, text, source));
}

function changed(state, isMeant, change) {
  return { ...state, entries: state.entries.map((entry) => (isMeant(entry) ? { ...entry, ...change(entry) } : entry)) };
}

// --- the reply -------------------------------------------------------------------------------------------------------

const isOpen = (kind) => (entry) => entry.kind === kind && entry.open;

function grown(state, kind, text) {
  const rest = kind === "reply" ? closed(state, "thought") : state;
  if (!rest.entries.some(isOpen(kind))) return added(rest, { kind, text, open: true });
  return changed(rest, isOpen(kind), (entry) => ({ text: entry.text + text }));
}

/** Completes the entry of this kind that is still arriving, or removes it if it is empty. */
function closed(state, kind) {
  if (!state.entries.some(isOpen(kind))) return state;
  const kept = state.entries.filter((entry) => !isOpen(kind)(entry) || entry.text);
  return changed({ ...state, entries: kept }, isOpen(kind), () => ({ open: false }));
}

const settled = (state) => closed(closed(state, "thought"), "reply");

function replied(state, event) {
  const text = cut(textOf(event.content));
  const thought = closed(state, "thought");
  const open = thought.entries.some(isOpen("reply"));
  if (open) return closed(changed(thought, isOpen("reply"), () => ({ text, seq: event.seq })), "reply");
  return text ? added(thought, { kind: "reply", text, open: false, seq: event.seq }) : thought;
}

// --- tools -----------------------------------------------------------------------------------------------------------

/** Updates an entry of a call, or adds it. */
function withCall(state, id, change) {
  const isMeant = (entry) => entry.kind === "tool" && entry.id === id;
  if (state.entries.some(isMeant)) return changed(state, isMeant, change);
  const entry = toolEntry(id, {});
  return added(state, { ...entry, ...change(entry) });
}

function progressed(state, event) {
  const isMeant = (entry) => entry.kind === "tool" && entry.id === event.id;
  return changed(state, isMeant, (entry) => ({ progress: (entry.progress + event.text).slice(-PROGRESS_CHARS) }));
}

function over(state) {
  const isWaiting = (entry) => entry.kind === "tool" && entry.state !== "done";
  return { ...changed(settled(state), isWaiting, () => ({ state: "cut" })), run: null };
}

// --- the run ---------------------------------------------------------------------------------------------------------

const runOf = (run) => (run === null ? null : { step: run.step, retry: run.waiting ? waited(run.waiting) : "" });

const running = (state) => ({ ...state, run: state.run ?? { step: 0, retry: "" } });

function asked(state, event) {
  if (event.shell) {
    const entry = shellEntry(event.shell, event.content, event.seq);
    return withCall(state, event.shell.id, () => entry);
  }
  const sender = event.sender && !state.own.has(event.input) ? event.sender : "";
  const { content, seq } = event;
  const entry = { kind: "user", text: cut(textOf(content)), images: imagesIn(content), sender, seq };
  return running(added(settled(state), entry));
}

function turnEnded(state, event) {
  const now = settled(state);
  return event.stop === "aborted" ? noted(now, "warn", "interrupted") : now;
}

/** After the replay, shows the partial text of the current step from the snapshot. */
function replayed(state) {
  const { snapshotRun: run } = state;
  if (run === null) return over(state);
  const now = { ...state, run: { ...runOf(run), retry: state.run?.retry || (runOf(run)?.retry ?? "") } };
  if (run.shell) return withCall(now, run.shell.id, () => shellEntry(run.shell, null));
  const { text, tool_uses: calls } = run.partial;
  const shown = text ? grown(changed(now, isOpen("reply"), () => ({ text: "" })), "reply", text) : now;
  return calls.reduce((each, { id, name, args }) => {
    return withCall(each, id, (entry) => (entry.written ? { name } : { name, written: args.length, state: "writing" }));
  }, shown);
}

// --- other events ----------------------------------------------------------------------------------------------------

function sessionChanged(state, event) {
  const { type, session, seq, ...told } = event;
  return { ...state, session: { ...state.session, ...told } };
}

function approvalRequested(state, event) {
  const others = state.approvals.filter((one) => one.approval !== event.approval);
  return { ...state, approvals: [...others, event] };
}

function approvalResolved(state, event) {
  const question = state.approvals.find((one) => one.approval === event.approval);
  const now = { ...state, approvals: state.approvals.filter((one) => one !== question) };
  if (state.own.has(event.approval) || !event.by) return now;
  const what = event.decision === "allow" ? "approved" : "denied";
  const reason = event.reason ? ` (${event.reason})` : "";
  return noted(now, "info", `${what} by ${event.by}: ${question?.tool ?? "a call"}${reason}`);
}

function jobChanged(state, { job }) {
  const isKnown = state.jobs.some((one) => one.id === job.id);
  return isKnown ? withJobs(state, job.id, () => job) : { ...state, jobs: [...state.jobs, job] };
}

const withJobs = (state, id, change) => ({
  ...state,
  jobs: state.jobs.map((one) => (one.id === id ? change(one) : one)),
});

function interrupted(state, event) {
  // The note contains the partial text of the reply.
  const isCut = event.what === "reply";
  const kept = isCut ? state.entries.filter((entry) => !isOpen("reply")(entry)) : state.entries;
  return noted(settled({ ...state, entries: kept }), "warn", event.text);
}

const retried = ({ reason, delay_s: s }) => `${reason}; next try in ${Math.round(s)} s`;

const switched = ({ provider, model, own, reason }) =>
  reason ? `${reason}; ${own ? "back to" : "going on with"} ${provider}/${model}` : `${provider}/${model} answers again`;

const waited = ({ reason, next_s: s }) => retried({ reason, delay_s: s });

const STEPS = {
  user_message: asked,
  shell_start: (state, event) => withCall(running(state), event.id, () => shellEntry(event, null, event.seq)),
  turn_start: (state, event) => ({ ...settled(state), run: { step: event.step, retry: "" } }),
  thinking_delta: (state, event) => grown(state, "thought", event.delta),
  text_delta: (state, event) => grown(state, "reply", event.delta),
  tool_use_start: (state, { id, name }) => withCall(closed(state, "thought"), id, () => ({ name, state: "writing" })),
  tool_use_args: (state, { id, delta }) => withCall(state, id, (entry) => ({ written: entry.written + delta.length })),
  tool_call: (state, { id, name, args, seq }) => withCall(state, id, () => ({ name, args, seq, state: "running" })),
  tool_progress: progressed,
  tool_result: (state, event) =>
    withCall(state, event.id, (entry) => ({ name: event.name ?? entry.name, seq: event.seq, ...answered(event) })),
  assistant_message: replied,
  usage: (state, event) => ({ ...state, usage: event.cumulative }),
  turn_end: turnEnded,
  done: over,
  replay_complete: replayed,
  // Calls of an incomplete reply never run.
  retry: (state, event) => ({ ...over(state), run: { ...running(state).run, retry: retried(event) } }),
  model_switched: (state, event) => noted(state, event.reason ? "warn" : "info", switched(event)),
  queue_changed: (state, { items, held }) => ({ ...state, queue: items, held }),
  session_changed: sessionChanged,
  plan: (state, event) => ({ ...state, plan: event.plan ?? null }),
  job: jobChanged,
  job_ports: (state, { job, ports }) => withJobs(state, job, (one) => ({ ...one, ports })),
  approval_requested: approvalRequested,
  approval_resolved: approvalResolved,
  interrupted,
  rewound: (state) => ({ ...state, isStale: true }),
  error: (state, event) => noted(state, "error", event.message),
  blocked: (state, event) => noted(state, "error", event.message),
  compact_done: (state) => noted(state, "info", "The conversation so far was summarised for the model."),
  forked: (state, event) => noted(state, "info", `Forked from ${event.file ?? event.origin}.`),
  guard_note: (state, event) => noted(state, "warn", event.text, event.extension),
  notice: (state, event) => noted(state, event.level, event.text),
  ext_notify: (state, event) => noted(state, event.level, event.message, event.extension),
  ext_display: (state, event) => noted(state, "info", event.text, event.extension),
};
