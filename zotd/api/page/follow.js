// Follows one session: attaches on each connection with the cursor, and passes on what is new.

import { GapError, isFresh } from "./cursor.js";

// Number of messages in a snapshot, and in a page of older ones.
const PAGE = 50;

export class Follower {
  #wire;
  #session;
  #took;
  #cursor = null;
  #isAttached = false;
  #isLeft = false;

  /** `took({snapshot})` and `took({event})` are called in order; missed events follow a resumed snapshot. */
  constructor(wire, session, took) {
    this.#wire = wire;
    this.#session = session;
    this.#took = took;
  }

  /** Attaches on a new connection, or again for a new snapshot; rejects like `Wire.call`. */
  async attach({ afresh = false } = {}) {
    this.#isAttached = false;
    if (afresh) this.#cursor = null; // also for later attempts, if the response is lost
    const after = this.#cursor === null ? {} : { after: this.#cursor };
    const snapshot = await this.#wire.call("attach", { session: this.#session, limit: PAGE, ...after });
    if (this.#isLeft) return;
    const seq = snapshot.mode === "snapshot" ? snapshot.seq : this.#cursor.seq;
    this.#cursor = { epoch: snapshot.epoch, seq };
    this.#isAttached = true;
    this.#took({ snapshot });
  }

  /** Handles an event of the connection, of any session. */
  heard(event) {
    if (event.session !== this.#session || !this.#isAttached) return;
    try {
      if (!isFresh(event, this.#cursor.seq)) return;
    } catch (error) {
      if (!(error instanceof GapError)) throw error;
      this.#isAttached = false;
      this.#wire.reconnect();
      return;
    }
    this.#cursor = { ...this.#cursor, seq: event.seq ?? this.#cursor.seq };
    this.#took({ event });
  }

  /** Requests a page of messages before `seq`. */
  older(before) {
    return this.#wire.call("session.history", { session: this.#session, before, limit: PAGE });
  }

  /** Requests the messages around the one with this `seq`, also if it is not part of the conversation any more. */
  async around(seq) {
    // Each message has a `seq` of its own, so at most half of these come after it.
    const page = await this.#wire.call("session.history", {
      session: this.#session,
      before: seq + PAGE + 1,
      limit: 2 * PAGE,
    });
    if (page.messages.some((message) => message.seq === seq)) return page;
    return this.#wire.call("session.history", { session: this.#session, at: seq, limit: PAGE });
  }

  /** Detaches; no further events are passed on. */
  leave() {
    this.#isAttached = false;
    this.#isLeft = true;
    this.#wire.call("detach", { session: this.#session }).catch(() => {}); // a lost connection has detached already
  }
}
