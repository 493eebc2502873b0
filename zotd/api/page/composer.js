// The prompt box with its images, completions and slash commands, the queued prompts, and the button that aborts a run.

import { Attachments } from "./attachments.js";
import { Completion } from "./completion.js";
import { byId, element, fill, say } from "./elements.js";
import { newId } from "./requests.js";
import { commandOf, promptOf } from "./slash.js";
import { CallError } from "./wire.js";

// Unsent texts by session; kept until the page is closed.
const drafts = new Map();

// Commands whose outcome arrives as an event, which the conversation shows.
// The answers of extensions arrive as events, too.
const TOLD_BY_EVENT = ["undo", "redo"];

export class Composer {
  #call;
  #own;
  #changes;
  #session = "";
  #attachments;
  #completion;
  #sending = null; // {text, images, requestId} of a prompt without a response
  #queue = null; // the queue that is displayed
  #form = byId("composer");
  #text = byId("prompt");
  #answer = byId("answer");
  #problem = byId("problem");

  /**
   * `call(type, fields)` sends a command for the current session; `own(id)` records an input of this client; `changes`
   * shows, undoes and redoes what runs have changed in files.
   */
  constructor({ call, own, changes }) {
    this.#call = call;
    this.#own = own;
    this.#changes = changes;
    this.#attachments = new Attachments({ area: this.#form, problem: (sentence) => say(this.#problem, sentence) });
    this.#completion = new Completion({ box: this.#text, call });
    this.#form.addEventListener("submit", (event) => this.#submitted(event));
    this.#text.addEventListener("keydown", (event) => this.#pressed(event));
    byId("abort").addEventListener("click", () => this.#command("abort"));
    byId("continue").addEventListener("click", () => this.#command("run_command", { name: "continue" }));
  }

  /** Switches to another session. */
  open(session) {
    if (this.#session) drafts.set(this.#session, this.#text.value);
    this.#session = session;
    this.#completion.close();
    this.#sending = null;
    this.#text.value = drafts.get(session) ?? "";
    this.#attachments.open(session);
    say(this.#answer, "");
    say(this.#problem, "");
  }

  /** `maySubmit`: the role of this client permits prompts; `isLive`: it is connected. */
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
    if (this.#completion.pressed(event)) {
      event.preventDefault();
      return;
    }
    // On a touch screen Enter inserts a newline, because there is no Shift+Enter.
    const isTouch = matchMedia("(pointer: coarse)").matches;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouch) return;
    event.preventDefault();
    this.#form.requestSubmit(byId("send"));
  }

  #submitted(event) {
    event.preventDefault();
    const text = this.#text.value;
    const command = commandOf(text);
    say(this.#answer, "");
    if (command !== null) this.#slash(text, command);
    else if (text.trim() || this.#attachments.images.length > 0) {
      this.#prompt(text, event.submitter?.id === "steer" ? "steer" : "queue");
    }
  }

  async #slash(text, { name, args }) {
    const session = this.#session;
    if (name.toLowerCase() === "diff" && args === "") {
      this.#text.value = "";
      this.#changes.open();
      return;
    }
    if (name.toLowerCase() === "btw") {
      await this.#beside(text, args, session);
      return;
    }
    const answer = await this.#command("run_command", { name, args });
    if (answer === null || this.#session !== session) return;
    if (answer.input) this.#own(answer.input);
    if (this.#text.value === text) this.#text.value = answer.action === "insert" ? answer.text : "";
    const isTold = answer.extension || TOLD_BY_EVENT.includes(name.toLowerCase());
    if (!isTold && answer.action === "display") say(this.#answer, answer.text);
  }

  /** Asks something beside the conversation; the answer is shown here only. */
  async #beside(text, question, session) {
    if (this.#text.value === text) this.#text.value = "";
    say(this.#answer, "Thinking…");
    const answer = await this.#command("session.side_question", { question });
    if (this.#session !== session) return;
    say(this.#answer, answer === null ? "" : `By the way: ${question}\n\n${answer.text}`);
  }

  async #prompt(text, whenBusy) {
    const session = this.#session;
    const images = this.#attachments.images;
    // The same prompt sent again after a lost connection keeps its request id, so the daemon accepts it only once.
    const requestId = this.#isSending(text, images) ? this.#sending.requestId : newId();
    this.#sending = { text, images, requestId };
    const fields = { message: promptOf(text), when_busy: whenBusy, request_id: requestId, images };
    const answer = await this.#command("prompt", fields);
    if (answer === null || this.#session !== session) return;
    this.#sending = null;
    this.#own(answer.input);
    this.#attachments.sent(images);
    if (this.#text.value === text) this.#text.value = "";
  }

  #isSending(text, images) {
    if (this.#sending?.text !== text || this.#sending.images.length !== images.length) return false;
    return images.every((image, at) => image === this.#sending.images[at]);
  }

  /** Sends a command and returns its response; null if it failed, and the reason is displayed. */
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
