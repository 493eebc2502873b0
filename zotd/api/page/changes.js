// What the last run has changed in files, and the buttons that take it back or make it again.

import { verbatim } from "./cards.js";
import { element, fill, say } from "./elements.js";
import { CallError } from "./wire.js";

// Files that are listed; the daemon sends up to 1,000.
const LISTED = 100;

// What happens to files that the user has changed since the run, and its name in the sentences of the daemon.
const POLICIES = { refuse: "stop, and name them", keep: "leave them (--keep)", overwrite: "restore them, too (--force)" };

export class Changes {
  #box;
  #call;
  #isIdle = false; // connected, and nothing runs
  #isRestoring = false;
  #newest; // key of the newest entry of the conversation
  #loads = 0; // an answer to another request than the last one is ignored
  #files = element("div");
  #problem = element("p", { class: "problem", role: "alert" });
  #undo = element("button", { type: "button", onclick: () => this.restore("session.undo") }, "Undo");
  #redo = element("button", { type: "button", onclick: () => this.restore("session.redo") }, "Redo");
  #policy = element("select", { id: "policy" }, ...Object.entries(POLICIES).map(optionElement));
  #actions = element(
    "div",
    { class: "buttons" },
    this.#undo,
    this.#redo,
    element("label", { for: "policy" }, "Files that you have changed since:"),
    this.#policy,
  );

  /** `call(type, fields)` sends a command for the current session. */
  constructor(box, call) {
    this.#box = box;
    this.#call = call;
    fill(box, this.#files, this.#problem, this.#actions);
  }

  /** Whether it is displayed. */
  get isOpen() {
    return !this.#box.hidden;
  }

  /** Shows what the last run has changed. */
  async open() {
    this.#box.hidden = false;
    fill(this.#files, element("p", { class: "fact" }, "Loading…"));
    await this.#load();
  }

  close() {
    this.#box.hidden = true;
    this.#loads += 1;
    fill(this.#files);
    this.#policy.value = "refuse";
    say(this.#problem, "");
  }

  /** `mayUndo`: the role of this client permits it; while something runs, files are not restored. */
  show({ run, entries }, { mayUndo, isLive }) {
    const hasNews = entries.at(-1)?.key !== this.#newest;
    this.#isIdle = isLive && run === null;
    if (this.#isIdle && this.isOpen && hasNews) this.#load(); // a run has ended, or a client has undone one
    if (this.#isIdle) this.#newest = entries.at(-1)?.key;
    this.#actions.hidden = !mayUndo;
    this.#enable();
  }

  /** Undoes or redoes what the last run has changed: `session.undo` or `session.redo`. An event shows what was restored. */
  async restore(type) {
    if (this.#isRestoring) return;
    this.#isRestoring = true;
    this.#enable();
    try {
      await this.#call(type, { when_changed: this.#policy.value });
      await this.#load();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#isRestoring = false;
      this.#enable();
    }
  }

  #enable() {
    const isDisabled = !this.#isIdle || this.#isRestoring;
    for (const control of [this.#undo, this.#redo, this.#policy]) control.disabled = isDisabled;
  }

  async #load() {
    const number = (this.#loads += 1);
    say(this.#problem, ""); // now: when the answer is here, it may be about an undo that was refused meanwhile
    try {
      const { files, total, patch, is_cut: isCut } = await this.#call("session.changes", {});
      if (number !== this.#loads) return;
      const more = total > LISTED ? element("li", { class: "fact" }, `and ${total - LISTED} more`) : null;
      fill(
        this.#files,
        element("h3", {}, `The last run has changed ${total === 1 ? "1 file" : `${total} files`}`),
        element("ul", { class: "files" }, ...files.slice(0, LISTED).map(fileElement), more),
        patch ? verbatim(patch, "Changes") : null,
        isCut ? element("p", { class: "fact" }, "The changes go on; zotctl checkpoints diff shows all of them.") : null,
      );
    } catch (error) {
      if (number !== this.#loads) return;
      fill(this.#files);
      this.#failed(error);
    }
  }

  #failed(error) {
    say(this.#problem, error instanceof CallError ? error.message : "The connection was lost; try it again.");
  }
}

function fileElement({ path, added, removed }) {
  const figures = added === undefined ? "no text" : `+${added} -${removed}`;
  return element("li", {}, element("span", { dir: "auto" }, path), " ", element("span", { class: "fact" }, figures));
}

function optionElement([value, label]) {
  return element("option", { value }, label);
}
