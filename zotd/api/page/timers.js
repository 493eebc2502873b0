// The timers of the daemon: when each is due next and what it has cost, and buttons that pause, fire and remove it.

import { byId, element, fill, say } from "./elements.js";
import { cut } from "./harmless.js";
import { nameOf } from "./list.js";
import { Repeatable } from "./requests.js";
import { CallError, LostError } from "./wire.js";

// Characters of a prompt that are shown; it may have 20,000.
const PROMPT_CHARS = 400;

const MAKERS = { loop: "by /loop", wake: "by the model" };

export class Timers {
  #call;
  #changed;
  #list = byId("timer-list");
  #summary = byId("timers-summary");
  #problem = byId("timers-problem");
  #timers = null; // null: not known yet
  #isOpen = false;
  #isAsking = false;
  #isStale = false; // something has changed since the list was asked for
  #removing = ""; // the id of the timer whose removal waits for a second press
  #requests = new Repeatable();
  #busy = new Set(); // ids of timers that are being changed
  #focus = ""; // the key of the button that gets the focus as soon as it is there and enabled
  #shown = ""; // what is rendered: a button that has the focus keeps it while nothing changes

  /** `call(type, fields)` sends a command; `changed()` is called when there is something else to show. */
  constructor({ call, changed }) {
    this.#call = call;
    this.#changed = changed;
  }

  /** The view is opened, or the connection is back. */
  open() {
    this.#isOpen = true;
    this.refresh();
  }

  /** Another view is opened. */
  close() {
    this.#isOpen = false;
    this.#removing = "";
    say(this.#problem, "");
  }

  /** Forgets everything, because the token is forgotten. */
  clear() {
    this.close();
    this.#timers = null;
    this.#shown = "";
    fill(this.#list);
    say(this.#summary, "");
  }

  /** Asks for the timers again if they are displayed; many changes at once lead to two requests. */
  async refresh() {
    if (!this.#isOpen) return;
    this.#isStale = true;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#isStale && this.#isOpen) {
        this.#isStale = false;
        this.#timers = (await this.#call("timer.list")).timers;
        this.#changed();
      }
    } catch (error) {
      if (error instanceof CallError) say(this.#problem, error.message);
      else if (!(error instanceof LostError)) throw error; // without a connection: asked again when it is back
    } finally {
      this.#isAsking = false;
    }
  }

  /** `sessions`: the known ones by id; `mayChange`: the role of this client permits it. */
  show({ sessions, mayChange, isLive }) {
    if (!this.#isOpen || this.#timers === null) return;
    const places = this.#timers.map((timer) => [placeOf(timer, sessions), nameAt(timer.last_session, sessions)]);
    const drawn = JSON.stringify([this.#timers, places, mayChange, isLive, this.#removing, [...this.#busy]]);
    if (drawn === this.#shown) return;
    this.#shown = drawn;
    if (this.#list.contains(document.activeElement)) this.#focus ||= document.activeElement.dataset.key;
    fill(this.#list, ...this.#timers.map((timer) => this.#item(timer, sessions, { mayChange, isLive })));
    this.#refocus();
    say(this.#summary, summaryOfTimers(this.#timers));
  }

  /** What had the focus has been rendered again, or is disabled for a moment, or has gone with its timer. */
  #refocus() {
    if (this.#focus === "") return;
    const wanted = this.#list.querySelector(`[data-key="${CSS.escape(this.#focus)}"]`);
    if (wanted?.disabled) return;
    this.#focus = "";
    (wanted ?? byId("timers-title")).focus({ preventScroll: true });
  }

  #item(timer, sessions, { mayChange, isLive }) {
    const why = whyOf(timer);
    return element(
      "li",
      { "data-state": timer.state },
      element("p", { class: "prompt", dir: "auto" }, cut(timer.message, PROMPT_CHARS)),
      element("p", { class: "due" }, ...dueOf(timer)),
      element("p", { class: "fact" }, ...this.#place(timer, sessions), ` · ${figuresOf(timer)}`),
      why && element("p", { class: "why" }, why),
      mayChange ? this.#buttons(timer, isLive) : "",
    );
  }

  #place(timer, sessions) {
    const link = (id) =>
      element("a", { href: `#${id}`, dir: "auto", "data-key": `session ${timer.id}` }, nameAt(id, sessions));
    if (timer.session) return ["in ", link(timer.session)];
    const last = timer.last_session ? [", the last one: ", link(timer.last_session)] : [];
    return [placeOf(timer, sessions), ...last];
  }

  #buttons(timer, isLive) {
    const isBusy = !isLive || this.#busy.has(timer.id);
    const button = (text, key, onclick, style) =>
      element("button", { type: "button", class: style, "data-key": `${key} ${timer.id}`, disabled: isBusy, onclick }, text);
    if (this.#removing === timer.id) {
      return element(
        "div",
        { class: "buttons", role: "group", "aria-label": "Remove this timer?" },
        element("span", {}, "Remove this timer? What it has begun goes on."),
        button("Remove it", "confirm", () => this.#change(timer, "timer.remove"), "danger"),
        button("Keep it", "keep", () => this.#ask("", `remove ${timer.id}`)),
      );
    }
    const isPaused = timer.state === "paused";
    return element(
      "div",
      { class: "buttons" },
      button(isPaused ? "Resume" : "Pause", "pause", () => this.#change(timer, isPaused ? "timer.resume" : "timer.pause")),
      button("Run now", "run", () => this.#change(timer, "timer.run")),
      button("Remove", "remove", () => this.#ask(timer.id, `keep ${timer.id}`), "danger"),
    );
  }

  /** Asks whether to remove a timer, or none; the button with the key `next` gets the focus. */
  #ask(id, next) {
    this.#removing = id;
    this.#focus = next;
    this.#changed();
  }

  async #change({ id }, type) {
    this.#busy.add(id);
    this.#changed();
    say(this.#problem, "");
    const request = { type, timer: id };
    try {
      const answer = await this.#call(type, { timer: id, request_id: this.#requests.idOf(request) });
      this.#requests.answered(request);
      if (type === "timer.run" && !answer.fired) say(this.#problem, `It was not sent: ${answer.outcome}.`);
    } catch (error) {
      const isKnown = error instanceof CallError;
      if (isKnown) this.#requests.answered(request);
      say(this.#problem, isKnown ? error.message : "The connection was lost; try it again.");
    } finally {
      this.#busy.delete(id);
      if (this.#removing === id) this.#removing = "";
      this.#changed();
      this.refresh();
    }
  }
}

/** What there is, in a sentence. */
export function summaryOfTimers(timers) {
  if (timers.length === 0) return "No timers. Type /loop 10m PROMPT in a session, or run zotctl schedule add in a terminal.";
  const paused = timers.filter((timer) => timer.state === "paused").length;
  const count = timers.length === 1 ? "1 timer" : `${timers.length} timers`;
  return paused ? `${count}, ${paused} paused.` : `${count}.`;
}

/** How often a timer has fired, what that has cost, and who has made it if that was not a person with a schedule. */
export function figuresOf({ fired = 0, spent_usd: spent = 0, limit_usd: limit, origin }) {
  const cost = `$${spent.toFixed(2)}${limit === undefined || limit === null ? "" : ` of $${limit.toFixed(2)}`}`;
  return [`fired ${fired === 1 ? "once" : `${fired} times`}`, cost, MAKERS[origin]].filter(Boolean).join(" · ");
}

/** Why a timer is paused, or why it did not fire when it was due last. */
export function whyOf({ state, reason, outcome }) {
  if (state === "paused") return reason ? `Paused: ${reason}.` : "Paused.";
  return outcome ? `The last time was left out: ${outcome}.` : "";
}

function dueOf({ state, due, rule }) {
  const again = rule.startsWith("at ") ? "once" : rule; // the time itself is shown as this browser writes times
  if (state === "firing") return [`is being sent · ${again}`];
  if (!due || state === "paused") return [rule];
  const shown = new Date(due).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return ["next ", element("time", { datetime: due }, shown), ` · ${again}`];
}

function placeOf({ session, cwd }, sessions) {
  return session ? nameAt(session, sessions) : `a new session each time in ${cwd}`;
}

function nameAt(id, sessions) {
  return sessions.has(id) ? nameOf(sessions.get(id)) : (id ?? "");
}
