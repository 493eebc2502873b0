// Follows one session: attaches on each connection with the cursor, and hands over what is new.

import { GapError, isFresh } from "./cursor.js";

// Messages of a snapshot, and of a page of older ones.
const PAGE = 50;

export class Follower {
  #wire;
  #session;
  #took;
  #cursor = null;
  #isAttached = false;
  #isLeft = false;

  /** `took({snapshot})`, `took({event})` get what comes, in order; what was missed comes behind a resumed snapshot. */
  constructor(wire, session, took) {
    this.#wire = wire;
    this.#session = session;
    this.#took = took;
  }

  /** On a new connection, or again when a new snapshot is wanted; rejects as `Wire.call`. */
  async attach({ afresh = false } = {}) {
    this.#isAttached = false;
    if (afresh) this.#cursor = null; // also for the attempts after this one, if its answer is lost
    const after = this.#cursor === null ? {} : { after: this.#cursor };
    const snapshot = await this.#wire.call("attach", { session: this.#session, limit: PAGE, ...after });
    if (this.#isLeft) return;
    const seq = snapshot.mode === "snapshot" ? snapshot.seq : this.#cursor.seq;
    this.#cursor = { epoch: snapshot.epoch, seq };
    this.#isAttached = true;
    this.#took({ snapshot });
  }

  /** An event of the connection, of whichever session. */
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

  /** A page of what was said before the `seq`. */
  older(before) {
    return this.#wire.call("session.history", { session: this.#session, before, limit: PAGE });
  }

  /** Nothing comes any more. */
  leave() {
    this.#isAttached = false;
    this.#isLeft = true;
    this.#wire.call("detach", { session: this.#session }).catch(() => {}); // without a connection it is left already
  }
}
