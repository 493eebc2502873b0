// The connection to the WebSocket door: hello, commands and responses, events. Reconnects until it is stopped.
//
//   connecting -> live -> lost -> (wait) -> connecting ...      refused: the token is invalid; no further attempts
//
// The token is sent in the first frame only.

/** The daemon has refused a command; the message is its sentence. */
export class CallError extends Error {
  constructor({ code, error }) {
    super(error);
    this.code = code;
  }
}

/** The connection was lost before the response, so the command may or may not have been executed. */
export class LostError extends Error {}

// Upper bounds of the delay before each attempt: a restarting daemon is back in a second. Attempts are unlimited.
const BACKOFF_FIRST_MS = 250;
const BACKOFF_CAP_MS = 10_000;

// Silence after which the daemon is pinged; clients that follow a session get heartbeats at the same interval.
const BEAT_MS = 15_000;

// Timeout for the response to hello, which takes a millisecond: the peer may not be a daemon.
const HELLO_MS = 10_000;

// Close code for an invalid token.
const UNAUTHORIZED = 4401;

// Errors of hello for which another attempt is useless.
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
   * `changed({link, ...})` is called with each state above; with `hello`, the daemon's response, if it is live, and with
   * `message` if it is refused. `heard(event)` is called with each event, in order.
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

  /** Closes the connection for good, without further callbacks. */
  stop() {
    clearInterval(this.#beat);
    clearTimeout(this.#timer);
    this.#changed = () => {};
    this.#drop();
  }

  /** Reconnects or checks the connection at once, because the page is visible or the network is back. */
  wake() {
    if (this.#socket === null) this.#connect();
    else this.#check();
  }

  /** Reconnects, because an event is missing. */
  reconnect() {
    this.#drop();
    this.#retry();
  }

  /** Sends a command and resolves to the `data` of its response; rejects with `CallError` or `LostError`. */
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
    this.call("ping").catch(() => {}); // any response will do; a lost connection is handled elsewhere
  }

  #refused(message) {
    const tell = this.#changed;
    this.stop();
    tell({ link: "refused", message });
  }

  #retry() {
    this.#failures += 1;
    const most = Math.min(BACKOFF_CAP_MS, BACKOFF_FIRST_MS * 2 ** Math.min(this.#failures - 1, 10));
    // Full jitter, so that pages that lost their daemon together do not reconnect together.
    this.#timer = setTimeout(() => this.#connect(), Math.random() * most);
    this.#changed({ link: "lost" });
  }

  /** Closes the socket, if any, and rejects pending calls. */
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
