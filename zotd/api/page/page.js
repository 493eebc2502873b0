// The page: login, the open session, and when to render.

import { activity } from "./activity.js";
import { Beginning } from "./begin.js";
import { Changes } from "./changes.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { byId, say } from "./elements.js";
import { isOf } from "./entries.js";
import { Follower } from "./follow.js";
import { Jobs } from "./jobs.js";
import { nameOf, showFacts, showSessions } from "./list.js";
import { Notifying } from "./notify.js";
import { Pictures } from "./pictures.js";
import { Plan } from "./plan.js";
import { Questions } from "./questions.js";
import { newId } from "./requests.js";
import { Search } from "./search.js";
import { PAGE, listed, told, waitingIn } from "./sessions.js";
import {
  EMPTY,
  MOST,
  NEWEST,
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
import { Timers } from "./timers.js";
import { CallError, LostError, Wire } from "./wire.js";

// Where the token is stored: for this tab, until it is closed; if its user wants that, in this browser.
const TOKEN = "zot.token";

// Where the form for a new session is, and where the timers are; ids of sessions begin with `s_`.
const NEW = "new";
const TIMERS = "timers";

const ROLES = ["read", "submit", "approve", "admin"];

// What is focused for those who listen, by view.
const TITLES = { list: "overview-title", session: "title", new: "beginner-title", timers: "timers-title" };

const LINKS = { connecting: "Connecting…", lost: "The connection was lost. Reconnecting…" };

let wire = null;
let follower = null;
let link = "";
let role = 0;
let sessions = new Map();
// For each list that is being read: the events that have come meanwhile, which may be newer than the list.
const listings = new Set();
let nextPage; // the cursor of `session.list`; undefined if all sessions are known
let state = EMPTY;
let opened = "";
let sought = null; // the `seq` of a message to jump to as soon as the session is attached
let isDrawing = false;
let shown = {}; // what was rendered last

const conversation = new Conversation({
  list: byId("conversation"),
  scroller: byId("scroller"),
  pictures: new Pictures((type, fields) => wire.call(type, { session: opened, ...fields })),
});
const questions = new Questions(byId("questions"), decide);
const changes = new Changes(byId("changes"), ofSession);
const plan = new Plan(byId("plan"), ofSession);
const jobs = new Jobs(byId("jobs"), ofSession);
const beginning = new Beginning({ call: (type, fields) => wire.call(type, fields), begun: replaceRoute });
const notifying = new Notifying({
  call: (type, fields) => wire.call(type, fields),
  opened: (session) => (location.hash = session),
});
const search = new Search({ call: (type, fields) => wire.call(type, fields), changed: () => draw() });
const timers = new Timers({ call: (type, fields) => wire.call(type, fields), changed: () => draw() });
const composer = new Composer({ call: ofSession, own: prompted, changes });

// --- connection ------------------------------------------------------------------------------------------------------

function enter(token) {
  const url = new URL("/v1", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  wire = new Wire({ url, token, changed: linkChanged, heard });
  byId("door").hidden = true;
  wire.start();
}

function leave(reason) {
  notifying.left().catch(() => {}); // the daemon removes the subscription when its push service does
  wire?.stop();
  wire = null;
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(TOKEN);
  forgetSession();
  search.clear();
  timers.clear();
  opened = "";
  sessions = new Map();
  link = "";
  byId("desk").hidden = true;
  byId("door").hidden = false;
  say(byId("refusal"), reason);
  byId("token").focus();
  byId("desk").dataset.view = view();
  draw();
}

function linkChanged({ link: now, hello, message }) {
  link = now;
  if (now === "refused") leave(message);
  else if (now === "live") arrived(hello);
  draw();
}

async function arrived(hello) {
  role = ROLES.indexOf(hello.role);
  byId("desk").hidden = false;
  try {
    // Subscribe before listing: changes during the listing are then reported as events.
    await wire.call("subscribe", { topics: ["sessions", "timers"] });
    await Promise.all([listFrom(undefined), attach()]);
    if (opened === NEW) beginning.open(sessions);
    if (opened === TIMERS) timers.open();
    await notifying.arrived(role >= ROLES.indexOf("submit"));
    tellFocus();
  } catch (error) {
    failed(error);
  }
  draw();
}

// --- sessions --------------------------------------------------------------------------------------------------------

async function listFrom(cursor) {
  const since = [];
  listings.add(since);
  try {
    await listMore(cursor);
  } finally {
    listings.delete(since);
  }
  for (const [event, now] of since) sessions = told(sessions, event, now);
  draw();
}

async function listMore(cursor) {
  const page = await wire.call("session.list", { limit: PAGE, ...(cursor ? { cursor } : {}) });
  // Apart: subagents must not displace the sessions that people have begun.
  const below = cursor ? undefined : await wire.call("session.list", { limit: PAGE, subagents: true });
  sessions = listed(cursor ? sessions : new Map(), page.sessions);
  if (below) sessions = listed(sessions, below.sessions.filter((session) => session.parent));
  nextPage = page.cursor;
}

function heard(event) {
  if (event.type === "timers_changed") {
    timers.refresh();
  } else if (event.type.startsWith("session_") && event.type !== "session_changed") {
    const now = Date.now();
    sessions = told(sessions, event, now);
    for (const since of listings) since.push([event, now]);
    timers.refresh(); // what a run costs counts for its timer
    draw();
  } else {
    follower?.heard(event);
  }
}

function forgetSession() {
  follower?.leave();
  follower = null;
  state = EMPTY;
  conversation.clear();
}

function route() {
  const [wanted, seq] = location.hash.slice(1).split("@"); // a session, and a message of it
  if (wire === null) return;
  sought = seq === undefined ? null : Number(seq);
  if (wanted === opened) {
    jump().catch(failed);
    return;
  }
  opened = wanted;
  forgetSession();
  changes.close();
  plan.close();
  jobs.close();
  timers.close();
  composer.open(opened);
  if (opened === NEW) {
    beginning.open(sessions);
  } else if (opened === TIMERS) {
    timers.open();
  } else if (opened) {
    follower = new Follower(wire, opened, took);
    if (link === "live") attach().catch(failed);
  }
  byId("desk").dataset.view = view(); // now, because what is not displayed cannot be focused
  draw();
  byId(TITLES[view()]).focus();
}

async function attach() {
  if (follower === null) return;
  await follower.attach();
  tellFocus();
  await jump();
}

/** Tells the daemon whether the open session has the focus: then it sends no push message about it. */
function tellFocus() {
  if (follower === null || link !== "live" || !notifying.isOn) return;
  const focused = !document.hidden && document.hasFocus();
  wire.call("presence.update", { session: opened, focused }).catch(() => {}); // it is told again after a reconnect
}

/** Shows the message that a search has found, once. */
async function jump() {
  const [asked, seq] = [opened, sought];
  if (seq === null) return;
  sought = null;
  const isKnown = state.entries.some((entry) => isOf(entry, seq));
  const page = isKnown ? null : await follower.around(seq);
  if (asked !== opened) return;
  conversation.seek(seq);
  change(isKnown ? withoutPassage(state) : withPassage(state, page));
}

/** Shows what follows from a prompt of this client. */
function prompted(input) {
  change(owned(state, input));
  if (state.passage !== null) toNewest();
}

function toNewest() {
  history.replaceState(null, "", `#${opened}`); // so that the same hit can be opened again
  conversation.toEnd();
  change(withoutPassage(state));
}

function view() {
  if (opened === NEW || opened === TIMERS) return opened;
  return opened ? "session" : "list";
}

/** Opens a session that this client has begun: from there "back" leads to the list and not to the form. */
function replaceRoute(id) {
  location.replace(`#${id}`);
}

function took({ snapshot, event }) {
  change(snapshot ? attached(state, snapshot) : reduce(state, event));
  if (state.isStale) follower.attach({ afresh: true }).catch(failed);
}

function change(next) {
  state = trimmed(next, conversation.isAtEnd ? NEWEST : MOST);
  draw();
}

// --- user actions ----------------------------------------------------------------------------------------------------

function ofSession(type, fields) {
  const isChange = !["prompt", "session.changes", "session.side_question", "complete"].includes(type); // a prompt has a request id of its own
  return wire.call(type, { session: opened, ...(isChange ? { request_id: newId() } : {}), ...fields });
}

async function decide({ approval, args_digest: digest }, decision) {
  try {
    change(owned(state, approval)); // before the response, because the event may arrive with it
    await ofSession("approve", { approval, args_digest: digest, ...decision });
  } catch (error) {
    questions.failed(error.message);
  }
}

async function showOlder() {
  const asked = opened;
  const before = oldestSeq(state);
  if (before === null) return;
  try {
    const page = await follower.older(before);
    if (asked !== opened) return;
    conversation.leaveEnd();
    change(withOlder(state, page));
  } catch (error) {
    failed(error);
  }
}

/** Shows an error of the daemon. A lost connection is shown by the link, which reconnects. */
function failed(error) {
  if (error instanceof CallError) say(byId("problem"), error.message);
  else if (!(error instanceof LostError)) throw error;
}

// --- rendering -------------------------------------------------------------------------------------------------------

/** Renders with the next frame, so that 5,000 deltas cause only a few dozen renderings. */
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawList();
    if (view() === "session") drawSession();
    const [maySubmit, isLive] = [role >= ROLES.indexOf("submit"), link === "live"];
    beginning.show(isLive && maySubmit);
    timers.show({ sessions, mayChange: maySubmit, isLive });
    byId("link").hidden = !(link in LINKS);
    say(byId("link"), LINKS[link] ?? "");
  });
}

function drawList() {
  byId("new").hidden = role < ROLES.indexOf("submit");
  if (sessions !== shown.sessions || opened !== shown.opened) showSessions(byId("sessions"), sessions, opened);
  shown = { sessions, opened };
  byId("sessions").hidden = search.isOpen;
  for (const id of ["hits", "found"]) byId(id).hidden = !search.isOpen;
  byId("no-sessions").hidden = search.isOpen || sessions.size > 0 || link !== "live";
  byId("more").hidden = search.isOpen || nextPage === undefined;
  const waiting = waitingIn(sessions);
  if (opened === TIMERS) byId("show-timers").setAttribute("aria-current", "page");
  else byId("show-timers").removeAttribute("aria-current");
  document.title = waiting ? `(${waiting}) zot` : "zot";
}

function drawSession() {
  const session = state.session;
  say(byId("title"), session ? nameOf(session) : "");
  if (session) showFacts(byId("facts"), session, state.usage);
  const { entries, hasMore } = displayed(state);
  conversation.show(entries);
  const isFull = entries.length >= MOST;
  byId("older").hidden = !hasMore || isFull || oldestSeq(state) === null;
  byId("oldest").hidden = !hasMore || !isFull;
  byId("newest").hidden = conversation.isAtEnd && state.passage === null;
  questions.show(state.approvals, role >= ROLES.indexOf("approve"));
  say(byId("activity"), activity(state));
  byId("activity").classList.toggle("unseen", state.approvals.length > 0); // the question is displayed next to it
  const [maySubmit, isLive] = [role >= ROLES.indexOf("submit"), link === "live"];
  byId("show-changes").setAttribute("aria-expanded", String(changes.isOpen));
  changes.show(state, { mayUndo: maySubmit, isLive });
  plan.show(state, { mayEdit: maySubmit, isLive });
  jobs.show(state, { mayStop: maySubmit, isLive });
  composer.show(state, { maySubmit, isLive });
}

// --- start -----------------------------------------------------------------------------------------------------------

byId("door").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  (byId("remember").checked ? localStorage : sessionStorage).setItem(TOKEN, token);
  say(byId("refusal"), "");
  enter(token);
  route();
});
byId("forget").addEventListener("click", () => leave(""));
byId("more").addEventListener("click", () => listFrom(nextPage).catch(failed));
byId("older").addEventListener("click", showOlder);
byId("newest").addEventListener("click", toNewest);
byId("show-changes").addEventListener("click", () => {
  if (changes.isOpen) changes.close();
  else changes.open();
  draw();
});
byId("scroller").addEventListener("scroll", () => change(state));
addEventListener("hashchange", route);
addEventListener("online", () => wire?.wake());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) wire?.wake();
  tellFocus();
});
addEventListener("focus", tellFocus);
addEventListener("blur", tellFocus);

const kept = sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);
if (kept) enter(kept);
else leave("");
route();
