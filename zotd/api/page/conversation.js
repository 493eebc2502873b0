// The list of entries. Only changed entries are rendered again, and the scroll position is kept.

import { showEntry } from "./cards.js";
import { element } from "./elements.js";

// Distance from the end within which the list follows new entries.
const NEAR_PX = 60;

// More entries at once are history and not news, and are not announced to screen readers.
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
    // If a question or a phone's keyboard reduces the height, a list at its end stays there.
    new ResizeObserver(() => this.#isAtEnd && this.toEnd()).observe(scroller);
  }

  /** Whether the newest entry is visible. */
  get isAtEnd() {
    return this.#isAtEnd;
  }

  /** Shows another session, from its end on. */
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

  /** Stops following the end, because the user asks for older entries. */
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
