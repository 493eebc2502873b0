// Ids of requests. The daemon answers a request that it has had already, and does nothing a second time.

/** A unique id. `randomUUID` is not available on pages served over plain HTTP by another machine. */
export function newId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Gives a request that is sent again after a lost connection the id that it had. */
export class Repeatable {
  #unanswered = new Map(); // ids by request, as text

  /** The id of this request: a new one unless the same request has had no answer. */
  idOf(request) {
    const text = JSON.stringify(request);
    if (!this.#unanswered.has(text)) this.#unanswered.set(text, newId());
    return this.#unanswered.get(text);
  }

  /** The daemon has answered this request, or refused it. */
  answered(request) {
    this.#unanswered.delete(JSON.stringify(request));
  }
}
