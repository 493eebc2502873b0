// Searches the messages of all sessions, and shows the hits instead of the list of sessions.

import { byId, element, fill, say } from "./elements.js";
import { nameOf } from "./list.js";
import { CallError } from "./wire.js";

// Number of hits that are requested at a time.
const PAGE = 30;

const FROM = { user: "You", assistant: "Agent", tool: "Tool" };

export class Search {
  #call;
  #changed;
  #form = byId("search");
  #query = byId("query");
  #hits = byId("hits");
  #more = byId("more-hits");
  #summary = byId("hits-summary");
  #shown = []; // hits
  #next; // the cursor of the next page; undefined if there is none
  #asked = ""; // the query that is displayed; empty: none

  /** `call(type, fields)` sends a command; `changed()` is called when hits are shown or hidden. */
  constructor({ call, changed }) {
    this.#call = call;
    this.#changed = changed;
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#search(this.#query.value.trim());
    });
    this.#query.addEventListener("input", () => this.#query.value || this.clear());
    byId("clear-search").addEventListener("click", () => {
      this.clear();
      this.#query.focus();
    });
    this.#more.addEventListener("click", () => this.#page(this.#asked));
  }

  /** Whether hits are shown instead of the sessions. */
  get isOpen() {
    return this.#asked !== "";
  }

  /** Shows the sessions again. */
  clear() {
    this.#query.value = "";
    this.#asked = "";
    this.#show([], undefined);
    say(this.#summary, "");
  }

  #search(query) {
    if (query === "") {
      this.clear();
      return;
    }
    this.#asked = query;
    this.#show([], undefined);
    say(this.#summary, "Searching…");
    this.#page(query);
  }

  async #page(query) {
    try {
      const cursor = this.#next === undefined ? {} : { cursor: this.#next };
      const page = await this.#call("session.search", { query, limit: PAGE, ...cursor });
      if (query !== this.#asked) return;
      this.#show([...this.#shown, ...page.hits], page.cursor);
      say(this.#summary, summaryOf(this.#shown.length, page));
    } catch (error) {
      if (query !== this.#asked) return;
      const isKnown = error instanceof CallError;
      say(this.#summary, isKnown ? error.message : "The connection was lost; search again when it is back.");
    }
  }

  #show(hits, next) {
    const known = this.#shown.length;
    const wasOnMore = document.activeElement === this.#more;
    this.#shown = hits;
    this.#next = next;
    fill(this.#hits, ...hits.map(hitElement));
    this.#more.hidden = next === undefined;
    if (wasOnMore) this.#hits.children[known]?.querySelector("a").focus(); // the first of the new ones
    this.#changed();
  }
}

/** What is said about the hits. `complete` is false if the newest messages are not indexed yet. */
export function summaryOf(count, { cursor, complete = true }) {
  const hits = count === 1 ? "1 message" : `${count} messages`;
  const found = count === 0 ? "No message has these words." : `${hits}${cursor ? " so far" : ""}, newest first.`;
  return complete ? found : `${found} The newest messages are not indexed yet: search again in a moment.`;
}

function hitElement({ session, name, seq, time, role, snippet }) {
  const when = new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const head = element("span", { class: "name", dir: "auto" }, nameOf({ name }));
  const where = element("span", { class: "state" }, FROM[role] ?? role);
  const text = element("span", { class: "snippet", dir: "auto" }, snippet);
  const stamp = element("time", { class: "place", datetime: time }, when);
  return element("li", {}, element("a", { href: `#${session}@${seq}` }, head, where, text, stamp));
}
