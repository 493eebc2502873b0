/**
 * Splits a byte stream into lines of bounded length, without I/O.
 *
 * A line ends only at LF: U+2028, NEL, VT and FF inside a string are data.
 *
 * @module
 */

const LF = 0x0a;

/** Stands for a line that exceeded the limit and was skipped. */
export const TOO_LONG = Symbol("a line that was too long");

export class Lines {
  readonly #limit: number;
  readonly #decoder = new TextDecoder();
  #held: Uint8Array[] = [];
  #size = 0;

  /** `limit`: the longest line, in bytes without its line feed. At most that much is kept between two calls. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Add bytes; the lines that they complete, oldest first. Invalid UTF-8 becomes U+FFFD. */
  feed(data: Uint8Array): (string | typeof TOO_LONG)[] {
    const lines: (string | typeof TOO_LONG)[] = [];
    let start = 0;
    for (let end = data.indexOf(LF); end >= 0; end = data.indexOf(LF, start)) {
      this.#hold(data.subarray(start, end));
      lines.push(this.#take());
      start = end + 1;
    }
    this.#hold(data.subarray(start));
    return lines;
  }

  /** The last line, which has no line feed; empty if there is none. Call it at the end of the stream. */
  end(): (string | typeof TOO_LONG)[] {
    return this.#size > 0 ? [this.#take()] : [];
  }

  #hold(bytes: Uint8Array): void {
    this.#size += bytes.length;
    if (this.#size > this.#limit) this.#held = [];
    else if (bytes.length > 0) this.#held.push(bytes);
  }

  #take(): string | typeof TOO_LONG {
    const isTooLong = this.#size > this.#limit;
    const held = this.#held;
    this.#held = [];
    this.#size = 0;
    if (isTooLong) return TOO_LONG;
    // A character may be divided between two pieces.
    return held.map((piece) => this.#decoder.decode(piece, { stream: true })).join("") + this.#decoder.decode();
  }
}
