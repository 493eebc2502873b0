// The list of entries. Only changed entries are rendered again, and the scroll position is kept.

import { showEntry } from "./cards.js";
import { element } from "./elements.js";
import { isOf } from "./entries.js";

// Distance from the end within which the list follows new entries.
const NEAR_PX = 60;

// More entries at once are history and not news, and are not announced to screen readers.
const NEWS = 5;

export class Conversation {
  #list;
  #scroller;
  #pictures;
  #items = new Map();
  #shown = new Map();
  #isAtEnd = true;
  #sought = null; // the `seq` of a message to show as soon as it is there

  /** `list` is in `scroller`; `pictures` shows the images of messages. */
  constructor({ list, scroller, pictures }) {
    this.#list = list;
    this.#scroller = scroller;
    this.#pictures = pictures;
    scroller.addEventListener("scroll", () => this.#measure());
    // A list at its end stays there if a question or a phone's keyboard reduces the height, or an image arrives.
    const resized = new ResizeObserver(() => this.#isAtEnd && this.toEnd());
    resized.observe(scroller);
    resized.observe(list);
  }

  /** Whether the newest entry is visible. */
  get isAtEnd() {
    return this.#isAtEnd;
  }

  /** Shows another session, from its end on. */
  clear() {
    this.#list.replaceChildren();
    this.#pictures.clear();
    this.#items.clear();
    this.#shown.clear();
    this.#isAtEnd = true;
    this.#sought = null;
  }

  /** Scrolls to the message with this `seq` and marks it, when it is shown next. */
  seek(seq) {
    this.#sought = seq;
    this.#isAtEnd = false;
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
    if (this.#found(entries)) return;
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

  #found(entries) {
    const entry = this.#sought === null ? undefined : entries.find((one) => isOf(one, this.#sought));
    if (entry === undefined) return false;
    this.#sought = null;
    for (const marked of this.#list.querySelectorAll(".sought")) marked.classList.remove("sought");
    const item = this.#items.get(entry.key);
    item.classList.add("sought");
    item.tabIndex = -1;
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "center" });
    this.#measure(); // a short list does not scroll
    return true;
  }

  #measure() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    this.#isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
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
    if (this.#shown.get(entry.key) !== entry) showEntry(item, entry, this.#pictures);
    this.#items.set(entry.key, item);
    this.#shown.set(entry.key, entry);
    return item;
  }
}
