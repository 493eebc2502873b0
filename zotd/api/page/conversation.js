// The list of entries: only what has changed is made anew, and what somebody reads stays where it is.

import { showEntry } from "./cards.js";
import { element } from "./elements.js";

// So near to the end a reader counts as being there, and goes with it.
const NEAR_PX = 60;

// More entries at once are not news but history, which nobody wants to be read aloud unasked.
const NEWS = 5;

export class Conversation {
  #list;
  #scroller;
  #items = new Map();
  #shown = new Map();
  #isAtEnd = true;

  constructor({ list, scroller }) {
    this.#list = list;
    this.#scroller = scroller;
    scroller.addEventListener("scroll", () => {
      this.#isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_PX;
    });
    // A question comes up below it, or a phone's keyboard: who is at the end stays there.
    new ResizeObserver(() => this.#isAtEnd && this.toEnd()).observe(scroller);
  }

  /** The newest entry is in sight. */
  get isAtEnd() {
    return this.#isAtEnd;
  }

  /** Another session is shown: from its end on. */
  clear() {
    this.#list.replaceChildren();
    this.#items.clear();
    this.#shown.clear();
    this.#isAtEnd = true;
  }

  show(entries) {
    const fromEnd = this.#scroller.scrollHeight - this.#scroller.scrollTop;
    const first = this.#list.firstElementChild;
    const added = entries.filter((entry) => !this.#items.has(entry.key)).length;
    this.#scroller.setAttribute("aria-live", added > NEWS ? "off" : "polite");
    this.#remove(new Set(entries.map((entry) => entry.key)));
    let next = this.#list.firstElementChild;
    for (const entry of entries) {
      const item = this.#item(entry);
      if (item === next) next = next.nextElementSibling;
      else this.#list.insertBefore(item, next);
    }
    if (this.#isAtEnd) this.toEnd();
    else if (this.#list.firstElementChild !== first) this.#scroller.scrollTop = this.#scroller.scrollHeight - fromEnd;
  }

  /** What comes in front is wanted: the end is not gone back to. */
  leaveEnd() {
    this.#isAtEnd = false;
  }

  toEnd() {
    this.#isAtEnd = true;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #remove(kept) {
    for (const [key, item] of this.#items) {
      if (kept.has(key)) continue;
      item.remove();
      this.#items.delete(key);
      this.#shown.delete(key);
    }
  }

  #item(entry) {
    const item = this.#items.get(entry.key) ?? element("li");
    if (this.#shown.get(entry.key) !== entry) showEntry(item, entry);
    this.#items.set(entry.key, item);
    this.#shown.set(entry.key, entry);
    return item;
  }
}
