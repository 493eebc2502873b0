// The list of files, mentions and slash commands that complete what is typed in the prompt box.

import { byId, element, fill, say } from "./elements.js";
import { choicesOf, fitting, isSame, tokenAt, written } from "./token.js";

// The pause before asking again about files that are still being indexed; the n-th one is n times as long.
const AGAIN_MS = 300;

// How often that is asked at most.
const MOST_AGAIN = 8;

export class Completion {
  #call;
  #box;
  #list = byId("choices");
  #count = byId("choices-count");
  #token = null; // what is typed now
  #dismissed = null; // the token whose list was closed with Escape, or taken
  #choices = []; // the last answer about this token
  #shown = []; // those that fit
  #chosen = -1; // index of the highlighted one; -1: none
  #isAsking = false;
  #incomplete = { token: null, times: 0 }; // how often was asked about files that are still being indexed

  /** Completes the text of `box`. `call(type, fields)` sends a command for the current session. */
  constructor({ box, call }) {
    this.#box = box;
    this.#call = call;
    box.addEventListener("input", () => this.#follow());
    box.addEventListener("blur", () => this.close());
    document.addEventListener("selectionchange", () => document.activeElement === box && this.#follow());
    this.#list.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps the focus and the keyboard
  }

  /** Closes the list, and forgets what it was about. */
  close() {
    this.#token = this.#dismissed = null;
    this.#choices = [];
    this.#show([]);
  }

  /** Handles a key; false if it has nothing to do with the list. */
  pressed(event) {
    if (this.#shown.length === 0 || event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return false;
    switch (event.key) {
      case "ArrowDown":
        this.#move(1);
        return true;
      case "ArrowUp":
        this.#move(-1);
        return true;
      case "Escape":
        this.#dismiss();
        return true;
      case "Tab":
        if (event.shiftKey) return false;
        this.#take(Math.max(this.#chosen, 0), { goesOn: true });
        return true;
      case "Enter":
        return !event.shiftKey && this.#enter();
      default:
        return false;
    }
  }

  // What is typed; an open list shows what fits of the last answer until the next one comes.
  #follow() {
    const { value, selectionStart, selectionEnd } = this.#box;
    const token = selectionStart === selectionEnd ? tokenAt(value, selectionStart) : null;
    const before = this.#token;
    if (token !== null && isSame(token, before) && token.query === before.query) return;
    this.#token = token;
    if (!isSame(token, before)) this.#choices = [];
    if (!isSame(token, this.#dismissed)) this.#dismissed = null;
    if (token === null || this.#dismissed !== null) {
      this.#show([]);
      return;
    }
    this.#show(fitting(this.#choices, token.query));
    this.#ask();
  }

  /** Asks for the newest token, one request at a time however fast somebody types. */
  async #ask() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      for (let asked = null; this.#token !== null && this.#token !== asked; ) {
        asked = this.#token;
        const answer = await this.#call("complete", { kind: asked.kind, text: asked.query });
        if (asked !== this.#token || this.#dismissed !== null) continue; // somebody has typed on, or closed the list
        this.#choices = choicesOf(answer);
        this.#show(this.#choices);
        if (answer.partial) this.#askLater(asked);
      }
    } catch {
      // No connection, or the session is gone, which is told elsewhere: an error at each key would only disturb.
    } finally {
      this.#isAsking = false;
    }
  }

  /** Asks again about files that are still being indexed; not for ever, because they may be too many. */
  #askLater(token) {
    const times = isSame(token, this.#incomplete.token) ? this.#incomplete.times + 1 : 1;
    this.#incomplete = { token, times };
    if (times > MOST_AGAIN) return;
    setTimeout(() => {
      if (token === this.#token) this.#ask();
    }, AGAIN_MS * times);
  }

  #show(choices) {
    const name = this.#shown[this.#chosen]?.name;
    const wasMoved = this.#chosen > 0;
    this.#shown = choices;
    this.#chosen = choices.findIndex((choice) => wasMoved && choice.name === name);
    // Nothing is chosen while only the slash is typed, so that Enter does not take a command that nobody has named.
    const isNamed = this.#token?.kind === "file" || this.#token?.query;
    if (this.#chosen < 0 && choices.length > 0 && isNamed) this.#chosen = 0;
    this.#draw();
  }

  #draw() {
    const kind = this.#token?.kind;
    const rows = this.#shown.map(({ name, detail, source }, index) =>
      element(
        "li",
        {
          id: `choice-${index}`,
          role: "option",
          "aria-selected": String(index === this.#chosen),
          onclick: () => this.#take(index, { goesOn: true }),
        },
        element("span", { class: "name", dir: "auto" }, kind === "command" ? `/${name}` : name),
        element("span", { class: "fact", dir: "auto" }, detail),
        element("span", { class: "fact" }, source),
      ),
    );
    fill(this.#list, ...rows);
    this.#list.hidden = rows.length === 0;
    say(this.#count, rows.length === 0 ? "" : `${rows.length} to choose from with the arrow keys`);
    this.#mark();
  }

  #mark() {
    [...this.#list.children].forEach((row, index) => row.setAttribute("aria-selected", String(index === this.#chosen)));
    if (this.#chosen < 0) this.#box.removeAttribute("aria-activedescendant");
    else {
      this.#box.setAttribute("aria-activedescendant", `choice-${this.#chosen}`);
      this.#list.children[this.#chosen].scrollIntoView({ block: "nearest" });
    }
  }

  #move(by) {
    const count = this.#shown.length;
    const from = this.#chosen < 0 && by < 0 ? 0 : this.#chosen;
    this.#chosen = (from + by + count) % count;
    this.#mark();
  }

  #dismiss() {
    this.#dismissed = this.#token;
    this.#show([]);
  }

  // What is written already is not taken again: Enter sends then, whether or not the list came before it.
  #enter() {
    const choice = this.#shown[this.#chosen];
    if (choice === undefined) return false;
    const { kind, start } = this.#token;
    if (this.#box.value.slice(start, this.#box.selectionStart) === written(kind, choice.name)) {
      this.#dismiss();
      return false;
    }
    this.#take(this.#chosen, { goesOn: false });
    return true;
  }

  /** Writes a choice. With `goesOn` the list stays open after a directory, for its files. */
  #take(index, { goesOn }) {
    const { kind, start } = this.#token;
    const { name } = this.#shown[index];
    const { value, selectionStart } = this.#box;
    const opens = goesOn && kind === "file" && name.endsWith("/");
    const words = opens ? written(kind, name).replace(/"$/, "") : `${written(kind, name)} `;
    const until = !opens && value[selectionStart] === " " ? selectionStart + 1 : selectionStart;
    if (!opens) this.#dismiss();
    this.#box.setRangeText(words, start, until, "end");
    this.#follow();
  }
}
