/**
 * Calls in both directions: the call that a handler answers, and calls that an extension makes to the host.
 *
 * @module
 */

import { Buffer } from "node:buffer";

import { isObject, type JsonObject } from "./json.ts";
import type { HostPipe } from "./pipe.ts";
import { Image, Result } from "./values.ts";
import type { Origin } from "./work.ts";
import type { CommandInvoked, ToolAnswer, ToolCall } from "./wire.ts";

/** The origin of a slash command: `session_id`, the `client_id` in which it was typed, `cwd`. */
export type CommandCall = Readonly<CommandInvoked>;

/**
 * One call of a tool, the second argument of its function.
 *
 * @example
 * ext.tool("download", { description: "Fetch a page.", args: { url: arg.string() } }, async ({ url }, call) => {
 *   call.progress(`asking ${url}`);
 *   return await (await fetch(url, { signal: call.signal })).text();
 * });
 */
export class Call {
  readonly id: string;
  readonly session_id: string | undefined;
  /** Only set for an extension with `scope: daemon`; others find it in `HelloAck`. */
  readonly cwd: string | undefined;
  /** Stays the same if this call is repeated after a crash; a tool with `replay: "idempotent"` uses it to recognise that. */
  readonly operation_key: string | undefined;
  /** The host asks for the outcome of the operation instead of its execution. */
  readonly reconcile: boolean;
  /** The call's span (W3C Trace Context), for spans of the extension's own; absent if the host makes no traces. */
  readonly traceparent: string | undefined;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal;
  readonly #pipe: HostPipe;

  constructor(frame: ToolCall, signal: AbortSignal, pipe: HostPipe) {
    this.id = frame.id;
    this.session_id = frame.session_id;
    this.cwd = frame.cwd;
    this.operation_key = frame.operation_key;
    this.reconcile = frame.reconcile ?? false;
    this.traceparent = frame.traceparent;
    this.signal = signal;
    this.#pipe = pipe;
  }

  /** Whether the result is no longer needed. */
  get cancelled(): boolean {
    return this.signal.aborted;
  }

  /**
   * Show progress to the user.
   *
   * @example
   * call.progress("half of it");
   */
  progress(text: string): void {
    this.#pipe.send({ type: "tool_progress", id: this.id, text });
  }
}

/** Calls to the host that are waiting for an answer. */
export class HostCalls {
  readonly #pipe: HostPipe;
  readonly #open = new Map<string, (result: Result) => void>();
  #last = 0;

  constructor(pipe: HostPipe) {
    this.#pipe = pipe;
  }

  /** Ask the host to run a tool, on behalf of the call in `about`. Rejects with the reason of `signal`. */
  async start(name: string, args: JsonObject, about: Origin, signal: AbortSignal | undefined): Promise<Result> {
    signal?.throwIfAborted();
    this.#last += 1;
    const id = `call-${this.#last}`;
    this.#pipe.send({
      type: "call_tool",
      id,
      name,
      args,
      ...(about.call_id === undefined ? {} : { parent_id: about.call_id }),
      ...(about.session_id === undefined ? {} : { session_id: about.session_id }),
    });
    let abort = () => {};
    try {
      return await new Promise<Result>((resolve, reject) => {
        abort = () => {
          this.#pipe.send({ type: "call_tool_cancel", id });
          reject(signal?.reason as Error);
        };
        this.#open.set(id, resolve);
        signal?.addEventListener("abort", abort);
      });
    } finally {
      this.#open.delete(id);
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Finish the call that a `tool_result` of the host answers; an unexpected one is dropped. */
  answered(frame: ToolAnswer): void {
    this.#open.get(frame.id)?.(resultOf(frame));
  }

  /** Fail all waiting calls, because the host has gone. */
  abandon(): void {
    for (const resolve of this.#open.values()) resolve(new Result("the host has gone", { is_error: true }));
  }
}

function resultOf(frame: ToolAnswer): Result {
  const blocks = Array.isArray(frame.content) ? frame.content.filter(isObject) : [];
  const texts = blocks.filter((block) => block["type"] === "text").map((block) => String(block["text"] ?? ""));
  const images = blocks
    .filter((block) => block["type"] === "image")
    .map((block) => new Image(Buffer.from(String(block["data"] ?? ""), "base64"), String(block["mime_type"] ?? "")));
  return new Result(texts.join("\n"), {
    images,
    is_error: frame.is_error ?? false,
    truncated: frame.truncated ?? false,
  });
}
