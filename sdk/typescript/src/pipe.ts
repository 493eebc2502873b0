/**
 * The connection to the host: one JSON object in each line, on the standard streams of the process.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { Console } from "node:console";
import { writeSync } from "node:fs";
import process from "node:process";
import { Readable } from "node:stream";

import { isObject, jsonText, type JsonObject } from "./json.ts";
import { Lines, TOO_LONG } from "./lines.ts";
import { MAX_LINE_BYTES, type FromExtension, type Hello } from "./wire.ts";

const STDOUT = 1;
const RETRY_MS = 1;

/** A frame is longer than the host reads, and was not sent. */
export class OversizedError extends Error {
  override name = "OversizedError";

  constructor() {
    super(`result over ${MAX_LINE_BYTES / 1024 / 1024} MiB`);
  }
}

/** Write a line to the extension's log, which is its stderr. */
export function log(text: string): void {
  process.stderr.write(text + "\n");
}

/** Write an error with its stack to the extension's log. */
export function logError(error: unknown): void {
  // The stack of Bun and Deno does not always begin with the message.
  const message = messageOf(error);
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  log(stack.includes(message) ? stack : `${error instanceof Error ? error.name : "thrown"}: ${message}\n${stack}`);
}

/** The message of an error, for the model or the user. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.constructor.name;
  return typeof error === "string" ? error : (JSON.stringify(error) ?? String(error));
}

/** Let `console` and `process.stdout` write to stderr: stdout is for frames. */
export function printToLog(): void {
  // Without opening the real stream, which would make its descriptor non-blocking.
  Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });
  globalThis.console = new Console({ stdout: process.stderr, stderr: process.stderr });
}

/** Frames from and to the host. */
export class HostPipe {
  #backlog: string[] | undefined = [];

  /** Send `hello`, followed by the frames that were sent before. */
  open(hello: Hello): void {
    const lines = [encode(hello), ...(this.#backlog ?? [])];
    this.#backlog = undefined;
    write(lines.join(""));
  }

  /**
   * Send a frame, or keep it until `open`. If the host has gone, the frame is dropped without an error.
   *
   * @throws TypeError: the frame contains a value that JSON cannot represent.
   * @throws OversizedError: the frame is longer than the host reads.
   */
  send(frame: FromExtension): void {
    const line = encode(frame);
    if (this.#backlog === undefined) write(line);
    else this.#backlog.push(line);
  }

  /** The host's frames until it closes the pipe. A line that is not a JSON object is logged and skipped. */
  async *frames(): AsyncGenerator<JsonObject> {
    const input = process.stdin;
    const nothing = Readable.from([]);
    Object.defineProperty(process, "stdin", { configurable: true, enumerable: true, get: () => nothing });
    const lines = new Lines(MAX_LINE_BYTES);
    for await (const chunk of input) yield* objects(lines.feed(chunk));
    yield* objects(lines.end());
  }
}

function* objects(lines: readonly (string | typeof TOO_LONG)[]): Generator<JsonObject> {
  for (const line of lines) {
    if (line === TOO_LONG) {
      log("skipped a line from the host that is over 4 MiB");
      continue;
    }
    const frame = decode(line);
    if (frame !== undefined) yield frame;
    else if (line.trim()) log(`skipped a line from the host that is no JSON object: ${line.slice(0, 200)}`);
  }
}

function decode(line: string): JsonObject | undefined {
  try {
    const frame: unknown = JSON.parse(line);
    return isObject(frame) ? frame : undefined;
  } catch {
    return undefined;
  }
}

function encode(frame: FromExtension): string {
  const line = jsonText(frame) + "\n";
  if (Buffer.byteLength(line) > MAX_LINE_BYTES) throw new OversizedError();
  return line;
}

/** Write at once and in whole: an answer must not be lost when the process ends. */
function write(text: string): void {
  let bytes: Uint8Array = new TextEncoder().encode(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(STDOUT, bytes));
    } catch (error) {
      if (codeOf(error) !== "EAGAIN") {
        if (codeOf(error) === "EPIPE") return; // the end of stdin follows, and ends the extension
        throw error;
      }
      // Another program has made the pipe non-blocking, and it is full.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
