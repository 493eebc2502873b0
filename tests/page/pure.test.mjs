// The modules of the page that compute and touch nothing. tests/page/test_pure.py puts this beside them and runs it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { activity } from "./activity.js";
import { directoryOf, modelOf } from "./begin.js";
import { GapError, isFresh } from "./cursor.js";
import { changesOf, diffRows } from "./diff.js";
import { isOf } from "./entries.js";
import { Follower } from "./follow.js";
import { cut, harmless } from "./harmless.js";
import { address, blocks, spans } from "./markdown.js";
import { summaryOf } from "./search.js";
import { fitted } from "./shrink.js";
import { inFamilies, label, listed, ordered, placesOf, told, waitingIn } from "./sessions.js";
import { commandOf, promptOf } from "./slash.js";
import { linesOf, stepsOf, summaryOfPlan } from "./steps.js";
import { figuresOf, summaryOfTimers, whyOf } from "./timers.js";
import { choicesOf, fitting, tokenAt, written } from "./token.js";
import {
  EMPTY,
  attached,
  displayed,
  oldestSeq,
  owned,
  reduce,
  trimmed,
  withOlder,
  withPassage,
  withoutPassage,
} from "./state.js";

const text = (words) => [{ type: "text", text: words }];
const user = (seq, words) => ({ type: "user_message", seq, content: text(words), input: `i${seq}` });
const said = (seq, words) => ({ type: "assistant_message", seq, content: text(words) });
const delta = (words) => ({ type: "text_delta", delta: words });
const called = (seq, id, name = "bash", args = {}) => ({ type: "tool_call", seq, id, name, args });
const done = { type: "done" };
const replayed = (seq) => ({ type: "replay_complete", seq });
const question = (approval, seq) => ({ type: "approval_requested", seq, approval, tool: "bash", args: {} });
const resolved = (approval, by = "zot") => ({ type: "approval_resolved", approval, decision: "allow", by });
const message = (seq, words) => ({ role: "user", content: text(words), seq });
const nothing = { queue: [], held: false, approvals: [], notes: [], usage: {}, run: null };
const empty = { mode: "snapshot", session: { id: "s", state: "idle" }, ...nothing, messages: [], has_more: false };
const snapshot = (more = {}) => ({ ...empty, ...more });
const resumed = (more = {}) => snapshot({ mode: "resumed", ...more });
const running = (words, uses = []) => ({ id: "r", step: 1, partial: { text: words, tool_uses: uses } });

const after = (events, state = attached(EMPTY, snapshot())) => events.reduce(reduce, state);
const seen = (state) => state.entries.map((entry) => [entry.kind, entry.text ?? entry.state]);

// --- what is shown of a session --------------------------------------------------------------------------------------

test("a run is told once: deltas, then the whole", () => {
  const deltas = [{ type: "turn_start", step: 1 }, delta("Good "), delta("day")];
  const state = after([user(1, "hi"), ...deltas, said(3, "Good day."), done]);
  assert.deepEqual(seen(state), [["user", "hi"], ["reply", "Good day."]]);
  assert.equal(state.run, null);
});

test("a call that is written behind the text does not make it appear twice", () => {
  const calls = [{ type: "tool_use_start", id: "c", name: "read" }, { type: "tool_use_end", id: "c" }];
  const state = after([user(1, "hi"), delta("I look."), ...calls, said(2, "I look."), called(3, "c", "read")]);
  assert.deepEqual(seen(state), [["user", "hi"], ["reply", "I look."], ["tool", "running"]]);
});

test("what was said at the snapshot goes on with the deltas behind the replay", () => {
  const state = after([replayed(0), delta(" mat")], attached(EMPTY, snapshot({ run: running("the cat on the") })));
  assert.deepEqual(seen(state), [["reply", "the cat on the mat"]]);
});

test("a client that comes back in the middle of a step shows each word once", () => {
  const before = after([user(1, "hi"), { type: "turn_start", step: 1 }, delta("one ")]);
  const state = after([replayed(1), delta("three")], attached(before, resumed({ run: running("one two ") })));
  assert.deepEqual(seen(state), [["user", "hi"], ["reply", "one two three"]]);
});

test("a client that comes back in a later step shows the missed reply and the partial", () => {
  const before = after([user(1, "hi"), { type: "turn_start", seq: 2, step: 1 }, delta("one ")]);
  const missed = [said(3, "one two"), { type: "turn_end", stop: "tool_use" }, { type: "turn_start", seq: 5, step: 2 }];
  const state = after([...missed, replayed(5)], attached(before, resumed({ run: running("new") })));
  assert.deepEqual(seen(state), [["user", "hi"], ["reply", "one two"], ["reply", "new"]]);
});

test("a step that begins ends what was said before it", () => {
  const state = after([delta("a"), { type: "turn_start", seq: 1, step: 2 }, delta("b")]);
  assert.deepEqual(seen(state), [["reply", "a"], ["reply", "b"]]);
});

test("a run that has ended while nobody looked is over", () => {
  const before = after([user(1, "hi"), called(2, "c")]);
  const state = after([replayed(2)], attached(before, resumed()));
  assert.deepEqual([state.run, seen(state)[1]], [null, ["tool", "cut"]]);
});

test("a new snapshot replaces everything", () => {
  const state = attached(after([user(1, "old"), delta("more")]), snapshot({ messages: [message(9, "new")] }));
  assert.deepEqual(seen(state), [["user", "new"]]);
});

test("what a crash has cut is told once, by the note about it", () => {
  const cutOff = { type: "interrupted", seq: 2, what: "reply", text: "the reply was cut here: half a" };
  const state = after([delta("half a"), cutOff]);
  assert.deepEqual(seen(state), [["note", "the reply was cut here: half a"]]);
});

test("a thought without words leaves nothing behind", () => {
  const thought = (words) => ({ type: "thinking_delta", delta: words });
  assert.deepEqual(seen(after([thought(""), delta("x")])), [["reply", "x"]]);
  assert.deepEqual(seen(after([thought("hm"), delta("x")])), [["thought", "hm"], ["reply", "x"]]);
});

test("results, progress and answers that come out of order harm nothing", () => {
  const late = [{ type: "tool_progress", id: "gone", text: "x" }, { type: "tool_use_end", id: "gone" }];
  assert.deepEqual(seen(after([...late, resolved("nobody", ""), { type: "never heard of" }])), []);
  const early = after([{ type: "tool_result", seq: 1, id: "c", name: "read", content: text("it") }]);
  assert.deepEqual([early.entries[0].name, early.entries[0].result.text], ["read", "it"]);
  const names = Object.getOwnPropertyNames(Object.prototype).map((type) => ({ type }));
  assert.deepEqual(seen(after(names)), []);
});

test("a call and its result are one entry, also when a page ends between them", () => {
  const wanted = { type: "tool_call", id: "c", name: "read", args: { path: "a" } };
  const call = { role: "assistant", seq: 4, content: [...text("look"), wanted] };
  const answer = { type: "tool_result", call_id: "c", is_error: false, content: text("it") };
  const result = { role: "tool", seq: 5, content: [answer] };
  const whole = attached(EMPTY, snapshot({ messages: [call, result] }));
  const newer = attached(EMPTY, snapshot({ messages: [result], has_more: true }));
  const halves = withOlder(newer, { messages: [call], has_more: false });
  for (const state of [whole, halves]) {
    assert.deepEqual(seen(state), [["reply", "look"], ["tool", "done"]]);
    assert.equal(state.entries[1].result.text, "it");
  }
});

test("older messages that are there already come once", () => {
  const messages = [1, 2, 3].map((seq) => message(seq, `m${seq}`));
  const state = trimmed(after([user(4, "m4")], attached(EMPTY, snapshot({ messages }))), 2);
  assert.equal(oldestSeq(state), 4);
  const older = withOlder(state, { messages, has_more: false });
  assert.deepEqual(older.entries.map((entry) => entry.text), ["m1", "m2", "m3", "m4"]);
  const again = withOlder(older, { messages: [message(4, "m4")], has_more: false });
  assert.equal(again.entries.length, 4);
  const content = [{ type: "tool_call", id: "c", name: "read", args: {} }];
  const overlap = { messages: [{ role: "assistant", seq: 5, content }], has_more: false };
  assert.equal(withOlder(after([called(6, "c", "read")]), overlap).entries.length, 1);
});

test("an answer closes its question, whoever gave it and however often", () => {
  const asked = after([question("a", 1), question("b", 2), question("a", 1)]);
  assert.deepEqual(asked.approvals.map((one) => one.approval), ["b", "a"]);
  const state = after([resolved("b"), resolved("b", "")], asked);
  assert.deepEqual(state.approvals.map((one) => one.approval), ["a"]);
  assert.match(state.entries[0].text, /approved by zot: bash/);
});

test("what this client has asked and decided is not told as somebody else's", () => {
  const mine = owned(owned(attached(EMPTY, snapshot()), "i1"), "a");
  const prompts = [{ ...user(1, "x"), sender: "page" }, { ...user(2, "y"), sender: "zot" }];
  const state = after([...prompts, question("a", 3), resolved("a", "page")], mine);
  assert.deepEqual(state.entries.map((entry) => entry.sender), ["", "zot"]);
});

test("a rewind asks for a new snapshot", () => {
  assert.equal(after([{ type: "rewound", seq: 9, to: 3 }]).isStale, true);
});

test("the line about what happens says who has to act first", () => {
  const state = after([user(1, "hi"), called(2, "c")]);
  assert.equal(activity(state), "Running bash…");
  assert.equal(activity(after([question("a", 3)], state)), "Needs you: bash");
  assert.equal(activity(after([done], state)), "");
});

// --- the cursor ------------------------------------------------------------------------------------------------------

test("an event is taken once, and a gap is noticed", () => {
  const taken = [{ seq: 5 }, { seq: 4 }, { seq: 1 }, {}, replayed(4)].map((event) => isFresh(event, 4));
  assert.deepEqual(taken, [true, false, false, true, true]);
  assert.throws(() => isFresh({ seq: 6 }, 4), GapError);
  assert.throws(() => isFresh(replayed(5), 4), GapError);
});

// --- sessions --------------------------------------------------------------------------------------------------------

test("sessions that need somebody come first, then those that work", () => {
  const page = [["a", "idle"], ["b", "running"], ["c", "waiting"]].map(([id, state]) => ({ id, state, updated: id }));
  let known = listed(new Map(), page);
  assert.deepEqual(ordered(known).map(label), ["needs you", "working", "idle"]);
  known = told(known, { type: "session_updated", session: "a", state: "idle", failed: true }, 1e12);
  known = told(known, { type: "session_removed", session: "c" }, 1e12);
  known = told(known, { type: "session_added", session: "d", state: "held" }, 1e12);
  assert.deepEqual(ordered(known).map((one) => one.id + " " + label(one)), ["d needs you", "b working", "a failed"]);
});

test("subagents stand below the session that has begun them, and count for it", () => {
  const page = [["a", "waiting"], ["b", "idle"]].map(([id, state]) => ({ id, state, updated: id }));
  let known = listed(new Map(), page);
  for (const [id, parent] of [["a1", "a"], ["a11", "a1"], ["x", "unknown"]]) {
    known = told(known, { type: "session_added", session: id, state: "waiting", parent }, 1e12);
  }
  known = told(known, { type: "session_updated", session: "a1", state: "waiting" }, 1e12);
  const found = inFamilies(ordered(known)).map(([session, depth]) => [session.id, depth]);
  assert.deepEqual(found, [["a", 0], ["a1", 1], ["a11", 2], ["b", 0]]);
  assert.equal(waitingIn(known), 1);
});

// --- timers ----------------------------------------------------------------------------------------------------------

test("a timer says what it has cost, who has made it and why it waits", () => {
  assert.equal(figuresOf({ fired: 12, spent_usd: 0.314, limit_usd: 5, origin: "schedule" }), "fired 12 times · $0.31 of $5.00");
  assert.equal(figuresOf({ fired: 1, origin: "wake" }), "fired once · $0.00 · by the model");
  assert.equal(whyOf({ state: "paused", reason: "it has spent its limit" }), "Paused: it has spent its limit.");
  assert.equal(whyOf({ state: "active", outcome: "the session is busy" }), "The last time was left out: the session is busy.");
  assert.equal(whyOf({ state: "active" }), "");
  assert.equal(summaryOfTimers([{ state: "active" }, { state: "paused" }]), "2 timers, 1 paused.");
});

// --- text that wants to be more --------------------------------------------------------------------------------------

test("characters that hide or steer are shown as their codes", () => {
  assert.equal(harmless("a\x1b[31mred\x1b[0m\x1b]0;t\x07\r"), "ared^[]0;t^G^M");
  assert.equal(harmless("\u202egpj.exe\u2069 \u200b"), "<U+202E>gpj.exe<U+2069> <U+200B>");
  assert.equal(harmless("\u{e0041}\x9b\ud800\u2028"), "<U+E0041><U+009B>\ufffd<U+2028>");
  assert.equal(harmless("tab\tline\n👩‍💻 é می‌خواهم"), "tab\tline\n👩‍💻 é می‌خواهم");
  assert.equal(cut("x".repeat(30), 10), `${"x".repeat(10)}\n… 20 more characters`);
});

test("Markdown is taken apart into text", () => {
  const found = blocks("# Hi\n\nA `b` **c** *d*\n\n- one\n  - two\n1. three\n\n> q\n\n```js\n<b>\n```\nend");
  assert.equal(found.map((block) => block.kind).join(" "), "heading paragraph list list quote code paragraph");
  assert.equal(found[1].spans.map((span) => span.kind).join(" "), "text code text bold text emphasis");
  assert.deepEqual(found[2].items.map((item) => [item.depth, item.mark]), [[0, "-"], [1, "-"]]);
  assert.deepEqual([found[5].language, found[5].text], ["js", "<b>"]);
});

test("markup, and addresses that are none of the web, stay the text that they are", () => {
  const hostile = [
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>)",
    "[x](//evil.example)",
    "[x](https://bank.example@evil.example/)",
    "![x](https://evil.example/pixel.png)",
  ];
  for (const words of hostile.slice(0, -1)) assert.ok(spans(words).every((span) => span.kind === "text"), words);
  assert.ok(spans(hostile.at(-1)).every((span) => ["text", "link"].includes(span.kind)));
  for (const target of ["javascript:alert(1)", "JaVaScRiPt:x", "vbscript:x", "file:///etc/passwd", "blob:x", "x"]) {
    assert.equal(address(target), null, target);
  }
  assert.equal(address("https://аpple.example/"), "https://xn--pple-43d.example/");
  assert.deepEqual(spans("see https://a.example/b, or"), [
    { kind: "text", text: "see " },
    { kind: "link", text: "", address: "https://a.example/b", length: 19 },
    { kind: "text", text: ", or" },
  ]);
});

test("every character of a text is shown, whatever it is", () => {
  const words = "a **b* `c [d](e) [f](https://g.example) ``h` *i** https:// <U> ~~j~~";
  const shown = spans(words).map((span) => span.text + (span.address ?? "")).join("");
  for (const letter of "abcdefhij") assert.ok(shown.includes(letter), letter);
});

test("a text of whatever shape is taken apart at once", { timeout: 10_000 }, () => {
  const shapes = ["`", "*", "**a ", "[", "[a](", "# ", "> ", "- ", "~", "```", "\n", " ", "https://", "```a\n", "1. "];
  const texts = shapes.flatMap((shape) => [shape.repeat(50_000), shape.repeat(3_000) + "x`"]);
  for (const words of texts) assert.ok(blocks(words).length >= 0);
});

// --- following -------------------------------------------------------------------------------------------------------

test("a new snapshot whose answer is lost is asked for again, and no cursor put in its place", async () => {
  const asked = [];
  const answers = [snapshot({ epoch: "e", seq: 5 }), null, snapshot({ epoch: "e", seq: 9 })];
  const call = (_, fields) => {
    asked.push(fields.after ?? null);
    const answer = answers.shift();
    return answer ? Promise.resolve(answer) : Promise.reject(new Error("lost"));
  };
  const follower = new Follower({ call }, "s", () => {});
  await follower.attach();
  await assert.rejects(follower.attach({ afresh: true }));
  await follower.attach();
  assert.deepEqual(asked, [null, null, null]);
});

test("a cursor that was resumed names the epoch of the daemon that it was resumed from", async () => {
  const asked = [];
  const answers = [snapshot({ epoch: "a", seq: 5 }), { ...snapshot({ epoch: "b", seq: 9 }), mode: "resumed" }];
  const call = (_, fields) => {
    asked.push(fields.after ?? null);
    return Promise.resolve(answers.shift() ?? snapshot({ epoch: "c", seq: 9 }));
  };
  const follower = new Follower({ call }, "s", () => {});
  await follower.attach();
  await follower.attach();
  await follower.attach();
  assert.deepEqual(asked, [null, { epoch: "a", seq: 5 }, { epoch: "b", seq: 5 }]);
});

// --- diffs -----------------------------------------------------------------------------------------------------------

test("a diff ends where its numbers say, whatever stands in its lines", () => {
  const rows = diffRows("Edited a\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n-- old\n+++ new\n same\n-- after\n");
  assert.deepEqual(rows.map((row) => row.sign).join(""), "@@@@-+ @@");
  assert.deepEqual(changesOf(rows).map((row) => row.sign + row.text), ["-- old", "+++ new", " same", "@…", "@…"]);
  const unended = diffRows("@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new");
  assert.equal(unended.map((row) => row.sign).join(""), "@-@+");
  assert.equal(diffRows("- a list\n+ no diff"), null);
});

// --- the prompt box --------------------------------------------------------------------------------------------------

test("a text that begins with a slash is a command unless its first word has another slash", () => {
  const table = [
    ["/undo", { name: "undo", args: "" }],
    [" /todo add\nmilk ", { name: "todo", args: "add\nmilk" }],
    ["/skill:pdf  read it", { name: "skill:pdf", args: "read it" }],
    ["/usr/bin is full", null],
    ["//todo", null],
    ["/", null],
    ["a /todo", null],
    ["", null],
  ];
  for (const [words, command] of table) assert.deepEqual(commandOf(words), command, words);
  assert.deepEqual(["//todo", "/usr/bin", "hi"].map(promptOf), ["/todo", "/usr/bin", "hi"]);
});

// --- a new session ---------------------------------------------------------------------------------------------------

test("a new session is offered the directories of known ones, the one used last first", () => {
  const session = (id, cwd, updated) => [id, { id, cwd, updated }];
  const known = new Map([session("a", "/old", "1"), session("b", "/new", "3"), session("c", "/old", "2")]);
  assert.deepEqual(placesOf(known), ["/new", "/old"]);
});

test("slashes at the end of a directory do not make it another one", () => {
  assert.equal(directoryOf(" /home/ann/shop// "), "/home/ann/shop");
  assert.equal(directoryOf("/"), "/");
});

test("a model is named with its vendor, or alone", () => {
  const models = [{ provider: "openai", id: "gpt-5" }];
  assert.deepEqual(modelOf("openai/gpt-5", models), { provider: "openai", model: "gpt-5" });
  assert.deepEqual(modelOf("openai/ft/mine", models), { provider: "openai", model: "ft/mine" });
  assert.deepEqual(modelOf("meta/llama-4", models), { model: "meta/llama-4" });
  assert.deepEqual(modelOf(" ", models), {});
});

// --- search ----------------------------------------------------------------------------------------------------------

test("an older part of a conversation is shown instead of the newest one, which goes on", () => {
  const now = attached(EMPTY, snapshot({ messages: [message(900, "late")] }));
  const state = withPassage(now, { messages: [message(7, "early")], has_more: true });
  const later = reduce(state, user(901, "later"));
  assert.deepEqual(displayed(later).entries.map((entry) => entry.text), ["early"]);
  assert.equal(oldestSeq(later), 8);
  const older = withOlder(later, { messages: [message(3, "first")], has_more: false });
  assert.deepEqual(displayed(older).entries.map((entry) => entry.text), ["first", "early"]);
  assert.deepEqual(displayed(withoutPassage(older)).entries.map((entry) => entry.text), ["late", "later"]);
});

test("the result of a call is found at the entry of the call", () => {
  const call = { role: "assistant", content: [{ type: "tool_call", id: "c", name: "bash", args: {} }], seq: 4 };
  const result = { role: "tool", content: [{ type: "tool_result", call_id: "c", content: text("needle") }], seq: 6 };
  const state = attached(EMPTY, snapshot({ messages: [call, result] }));
  const found = (seq) => state.entries.filter((entry) => isOf(entry, seq)).map((entry) => entry.id);
  assert.deepEqual([found(4), found(6), found(5)], [["c"], ["c"], []]);
});

test("what a search has found is counted, and what is not indexed yet is told", () => {
  assert.equal(summaryOf(1, {}), "1 message, newest first.");
  assert.equal(summaryOf(30, { cursor: "x" }), "30 messages so far, newest first.");
  assert.match(summaryOf(0, { complete: false }), /^No message has these words\. The newest messages are not indexed/);
});

// --- images ----------------------------------------------------------------------------------------------------------

test("an image is made smaller until its longer edge fits, and never larger", () => {
  assert.deepEqual(fitted(4000, 3000, 2000), [2000, 1500]);
  assert.deepEqual(fitted(30, 9000, 2000), [7, 2000]);
  assert.deepEqual(fitted(640, 480, 2000), [640, 480]);
  assert.deepEqual(fitted(9000, 1, 2000), [2000, 1]);
});

// --- jobs ------------------------------------------------------------------------------------------------------------

test("a job is as the newest event about it says", () => {
  const job = { id: "j1", command: "serve", state: "running" };
  const begun = reduce(attached(EMPTY, snapshot()), { type: "job", seq: 2, job });
  assert.deepEqual(begun.jobs, [job]);
  const serving = reduce(begun, { type: "job_ports", job: "j1", ports: [80] });
  assert.deepEqual(serving.jobs, [{ ...job, ports: [80] }]);
  assert.deepEqual(reduce(serving, { type: "job_ports", job: "j2", ports: [1] }).jobs, serving.jobs);
  const over = reduce(serving, { type: "job", seq: 3, job: { ...job, state: "ended" } });
  assert.deepEqual(over.jobs, [{ ...job, state: "ended" }]);
  assert.deepEqual(attached(over, snapshot({ jobs: [job] })).jobs, [job]);
});

// --- plans -----------------------------------------------------------------------------------------------------------

test("a plan is that of the newest event", () => {
  const plan = { steps: [{ text: "look", state: "pending" }], revision: 1, status: "draft" };
  const state = attached(EMPTY, snapshot({ plan }));
  assert.equal(state.plan, plan);
  assert.deepEqual(reduce(state, { type: "plan", seq: 2, plan: { ...plan, revision: 2 } }).plan.revision, 2);
  assert.equal(reduce(state, { type: "plan", seq: 2, plan: null }).plan, null);
  assert.equal(attached(state, snapshot()).plan, null);
});

test("steps are edited as lines", () => {
  const steps = [{ text: "look", state: "done" }, { text: "change", state: "active" }, { text: "test", state: "pending" }];
  assert.equal(linesOf(steps), "[x] look\n[>] change\n[ ] test");
  assert.deepEqual(stepsOf(linesOf(steps)), steps);
  assert.deepEqual(stepsOf("\n  [X]look\nrun it\n[?] what\n"), [
    { text: "look", state: "done" },
    { text: "run it", state: "pending" },
    { text: "[?] what", state: "pending" },
  ]);
});

test("a plan says how far it is, and who has decided", () => {
  const steps = [{ text: "look", state: "done" }, { text: "test", state: "pending" }];
  assert.equal(summaryOfPlan({ steps, status: "draft", by: "ann" }), "1 of 2 done · draft");
  assert.equal(summaryOfPlan({ steps, status: "rejected", by: "ann", comment: "no" }), "1 of 2 done · rejected by ann: no");
});

// --- completion ------------------------------------------------------------------------------------------------------

test("a slash begins a command at the beginning of the text only, an at sign a file at that of a word", () => {
  const at = (words) => tokenAt(words, words.length);
  assert.deepEqual(at("/un"), { kind: "command", start: 0, query: "un" });
  assert.deepEqual(at("see @src/a"), { kind: "file", start: 4, query: "src/a" });
  assert.deepEqual(at("@"), { kind: "file", start: 0, query: "" });
  assert.deepEqual(at('@"my pa'), { kind: "file", start: 0, query: "my pa" });
  assert.deepEqual(at("a\n@docs:file:///x"), { kind: "file", start: 2, query: "docs:file:///x" });
  assert.deepEqual(at("@a@b"), { kind: "file", start: 0, query: "a@b" });
  for (const words of ["", "x/un", "/un ", "/usr/bin", "a@b", "@a ", '@"a" ']) assert.equal(at(words), null, words);
  assert.equal(tokenAt("@ab cd", 2).query, "a");
});

test("a mention with a space is quoted", () => {
  assert.equal(written("file", "a b.txt"), '@"a b.txt"');
  assert.equal(written("file", "docs:x"), "@docs:x");
  assert.equal(written("command", "undo"), "/undo");
});

test("choices that cannot fit any more are left out until the next answer", () => {
  const choices = choicesOf({ items: ["src/View.py", "docs:x"], found: [{ text: "docs:x", detail: "d", source: "docs" }] });
  assert.deepEqual(choices[1], { name: "docs:x", detail: "d", source: "docs" });
  assert.deepEqual(fitting(choices, "sv").map((choice) => choice.name), ["src/View.py"]);
  assert.equal(fitting(choices, "").length, 2);
});
