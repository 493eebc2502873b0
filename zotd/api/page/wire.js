// The connection to the door: hello, commands and their answers, events. It comes back by itself until it is stopped.
//
//   connecting -> live -> lost -> (wait) -> connecting ...      refused: the token is not taken; nothing is tried again
//
// The token goes into the first frame and nowhere else.

/** The daemon has refused a command; the message is its sentence. */
export class CallError extends Error {
  constructor({ code, error }) {
    super(error);
    this.code = code;
  }
}

/** The connection was lost before the answer: whether the command was carried out is not known. */
export class LostError extends Error {}

// Upper bounds of the delay before an attempt: a daemon that restarts is back in a second; there is no last attempt.
const BACKOFF_FIRST_MS = 250;
const BACKOFF_CAP_MS = 10_000;

// Silence after which the daemon is asked whether it is there; who follows something hears that at the same pace.
const BEAT_MS = 15_000;

// Longest wait for the answer to hello, which takes a millisecond: something may accept connections and be no daemon.
const HELLO_MS = 10_000;

// The close code of a door that does not take the token.
const UNAUTHORIZED = 4401;

// Refusals of hello that another attempt changes nothing about.
const FINAL = ["unauthorized", "forbidden", "unsupported", "bad_request"];

export class Wire {
  #url;
  #token;
  #changed;
  #heard;
  #socket = null;
  #calls = new Map();
  #lastId = 0;
  #failures = 0;
  #timer = 0;
  #wasSilent = false;
  #beat = 0;

  /**
   * `changed({link, ...})` tells each state above: with `hello`, the daemon's answer, when it is live; with `message`
   * when it is refused. `heard(event)` gets each event, in order.
   */
  constructor({ url, token, changed, heard }) {
    this.#url = url;
    this.#token = token;
    this.#changed = changed;
    this.#heard = heard;
  }

  start() {
    this.#beat = setInterval(() => this.#check(), BEAT_MS);
    this.#connect();
  }

  /** For good; nothing is told any more. */
  stop() {
    clearInterval(this.#beat);
    clearTimeout(this.#timer);
    this.#changed = () => {};
    this.#drop();
  }

  /** Somebody looks again, or there is a network again: do not wait for the next attempt, nor trust the silence. */
  wake() {
    if (this.#socket === null) this.#connect();
    else this.#check();
  }

  /** Come back on a new connection: something is missing on this one. */
  reconnect() {
    this.#drop();
    this.#retry();
  }

  /** The `data` of the answer; rejects with `CallError` or `LostError`. */
  call(type, fields = {}) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return Promise.reject(new LostError("there is no connection"));
    this.#lastId += 1;
    const id = this.#lastId;
    this.#socket.send(JSON.stringify({ id, type, ...fields }));
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#changed({ link: "connecting" });
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#timer = setTimeout(() => this.reconnect(), HELLO_MS);
    socket.onopen = () => this.#greet(socket);
    socket.onmessage = ({ data }) => this.#received(data);
    socket.onclose = ({ code }) => {
      if (code === UNAUTHORIZED) this.#refused("The token is not accepted.");
      else this.reconnect();
    };
  }

  async #greet(socket) {
    const client = { name: "page", kind: "page" };
    try {
      const hello = await this.call("hello", { client, protocol: [1, 1], token: this.#token, can_approve: true });
      clearTimeout(this.#timer);
      this.#failures = 0;
      this.#changed({ link: "live", hello });
    } catch (error) {
      if (socket !== this.#socket) return;
      if (error instanceof CallError && FINAL.includes(error.code)) this.#refused(error.message);
      else if (error instanceof CallError) this.reconnect();
      else throw error;
    }
  }

  #received(data) {
    this.#wasSilent = false;
    const frame = JSON.parse(data);
    if (frame.type !== "response") {
      this.#heard(frame);
      return;
    }
    const call = this.#calls.get(frame.id);
    this.#calls.delete(frame.id);
    if (frame.success) call?.resolve(frame.data);
    else call?.reject(new CallError(frame));
  }

  #check() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (this.#wasSilent) {
      this.reconnect();
      return;
    }
    this.#wasSilent = true;
    this.call("ping").catch(() => {}); // any answer is one, and the loss of the connection is told elsewhere
  }

  #refused(message) {
    const tell = this.#changed;
    this.stop();
    tell({ link: "refused", message });
  }

  #retry() {
    this.#failures += 1;
    const most = Math.min(BACKOFF_CAP_MS, BACKOFF_FIRST_MS * 2 ** Math.min(this.#failures - 1, 10));
    // Full jitter: pages that have lost their daemon together do not come back together.
    this.#timer = setTimeout(() => this.#connect(), Math.random() * most);
    this.#changed({ link: "lost" });
  }

  /** Let the socket go, if there is one, and fail what waits for it. */
  #drop() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    this.#wasSilent = false;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    const waiting = [...this.#calls.values()];
    this.#calls.clear();
    for (const { reject } of waiting) reject(new LostError("The connection was lost before the response arrived."));
  }
}
