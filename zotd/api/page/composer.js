// The prompt box, what waits behind it, and the button that stops a run.

import { byId, element, fill, say } from "./elements.js";
import { CallError } from "./wire.js";

// Texts that were written for a session and not sent; they last as long as the page.
const drafts = new Map();

export class Composer {
  #call;
  #own;
  #session = "";
  #sending = null; // {text, requestId} of a prompt whose answer has not come
  #queue = null; // the one that is shown
  #form = byId("composer");
  #text = byId("prompt");
  #problem = byId("problem");

  /** `call(type, fields)` sends a command about the session that is shown; `own(id)` is told which inputs are ours. */
  constructor({ call, own }) {
    this.#call = call;
    this.#own = own;
    this.#form.addEventListener("submit", (event) => this.#submitted(event));
    this.#text.addEventListener("keydown", (event) => this.#pressed(event));
    byId("abort").addEventListener("click", () => this.#command("abort"));
    byId("continue").addEventListener("click", () => this.#command("run_command", { name: "continue" }));
  }

  /** The box belongs to that session from now on. */
  open(session) {
    if (this.#session) drafts.set(this.#session, this.#text.value);
    this.#session = session;
    this.#sending = null;
    this.#text.value = drafts.get(session) ?? "";
    say(this.#problem, "");
  }

  /** `maySubmit`: this client's role is enough; `isLive`: there is a connection. */
  show({ run, queue, held }, { maySubmit, isLive }) {
    this.#form.hidden = !maySubmit;
    const isBusy = run !== null;
    say(byId("send"), isBusy ? "Queue" : "Send");
    byId("steer").hidden = !isBusy;
    byId("abort").hidden = !isBusy;
    byId("continue").hidden = isBusy || !held;
    for (const id of ["send", "steer", "abort", "continue"]) byId(id).disabled = !isLive;
    if (queue !== this.#queue) fill(byId("queue"), ...queue.map((item) => this.#waiting(item, maySubmit)));
    byId("queue").hidden = queue.length === 0;
    this.#queue = queue;
  }

  #waiting({ id, text, mode }, maySubmit) {
    const what = element("span", { class: "from" }, mode === "steer" ? "steers the run" : "queued");
    const label = `Take back: ${text.slice(0, 40)}`;
    const back = element(
      "button",
      { type: "button", "aria-label": label, onclick: () => this.#command("queue.withdraw", { input: id }) },
      "Take back",
    );
    return element("li", {}, what, element("span", { class: "waiting", dir: "auto" }, text), maySubmit ? back : null);
  }

  #pressed(event) {
    // On a touch screen Enter is how a line ends, for there is no Shift+Enter.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouch) return;
    event.preventDefault();
    this.#form.requestSubmit(byId("send"));
  }

  #submitted(event) {
    event.preventDefault();
    this.#prompt(event.submitter?.id === "steer" ? "steer" : "queue");
  }

  async #prompt(whenBusy) {
    const text = this.#text.value;
    const session = this.#session;
    if (!text.trim()) return;
    // The same text sent again after a lost connection is the same prompt: the daemon takes it once.
    const requestId = this.#sending?.text === text ? this.#sending.requestId : newId();
    this.#sending = { text, requestId };
    const fields = { message: text, when_busy: whenBusy, request_id: requestId };
    const answer = await this.#command("prompt", fields);
    if (answer === null || this.#session !== session) return;
    this.#sending = null;
    this.#own(answer.input);
    if (this.#text.value === text) this.#text.value = "";
  }

  /** The answer, null when there is none: the reason is shown. */
  async #command(type, fields = {}) {
    try {
      const answer = (await this.#call(type, fields)) ?? {};
      say(this.#problem, "");
      return answer;
    } catch (error) {
      const isKnown = error instanceof CallError;
      say(this.#problem, isKnown ? error.message : "The connection was lost; it is unknown whether this arrived.");
      return null;
    }
  }
}

/** An id that nobody else makes. Not `randomUUID`, which plain HTTP to another machine does not have. */
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
