/**
 * Runs the author's functions. Each run settles exactly once, with a value or an error, whatever happens first: the
 * function returns, it throws, it is cancelled, or the extension has to end.
 *
 * @module
 */

import { AsyncLocalStorage } from "node:async_hooks";

import { logError } from "./pipe.ts";

/** The answer is no longer needed, or the extension ends before there is one. */
export class Cancelled extends Error {
  override name = "Cancelled";
}

/** The session and call that a function runs for; frames that it sends carry them. */
export interface Origin {
  session_id?: string | undefined;
  /** Id of the tool call or command that it answers; absent for events, guards and keys. */
  call_id?: string | undefined;
  /** Aborted when that call is cancelled. */
  signal?: AbortSignal;
}

const NOWHERE: Origin = {};
const origins = new AsyncLocalStorage<Origin>();

/** Origin of the running function; empty in what the extension has started itself. */
export function origin(): Origin {
  return origins.getStore() ?? NOWHERE;
}

/** What became of a run. */
export type Outcome = { value: unknown } | { error: unknown };

/** Runs of one lane run one after another. */
export class Lane {
  tail: Promise<void> = Promise.resolve();
}

/** One run of one function. */
export class FunctionRun {
  readonly #function: (signal: AbortSignal) => unknown;
  readonly #settled: (outcome: Outcome) => void;
  readonly #about: Origin;
  readonly #controller = new AbortController();
  #isSettled = false;

  /** `settled` is called exactly once. The function gets a signal, which is aborted when the run is cancelled. */
  constructor(run: (signal: AbortSignal) => unknown, settled: (outcome: Outcome) => void, about: Origin = NOWHERE) {
    this.#function = run;
    this.#settled = settled;
    this.#about = { ...about, signal: this.#controller.signal };
  }

  /** Tell the function that its answer is no longer needed; what it still returns is passed on. */
  cancel(): void {
    this.#controller.abort(new Cancelled("cancelled"));
  }

  /** Run the function, unless it was cancelled before. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#controller;
    if (signal.aborted) {
      this.settle({ error: new Cancelled("cancelled before it began") });
      return;
    }
    try {
      // `await` within, so that what the function awaits knows its origin as well.
      const value = await origins.run(this.#about, async () => await this.#function(signal));
      this.settle({ value });
    } catch (error) {
      // What a function was waiting for rejects with the signal's reason, or with an AbortError of its own.
      const isAbort = signal.aborted && error instanceof Error && error.name === "AbortError";
      this.settle({ error: isAbort ? signal.reason : error });
    }
  }

  /** Set the result; later ones are ignored. */
  settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    try {
      this.#settled(outcome);
    } catch (error) {
      logError(error); // the host must get the answers of other runs
    }
  }
}

/** Runs functions and knows which have not finished. */
export class Workers {
  readonly #unfinished = new Set<FunctionRun>();
  #idle: () => void = () => {};

  /** Start a run at once, or after the earlier ones of its lane. */
  start(run: FunctionRun, lane?: Lane): void {
    this.#unfinished.add(run);
    const before = lane?.tail;
    const finished = before === undefined ? this.#run(run) : before.then(() => this.#run(run));
    if (lane !== undefined) lane.tail = finished;
  }

  /** Wait for runs, and cancel those that take longer than `patience_ms`. */
  async close(patience_ms: number): Promise<void> {
    if (this.#unfinished.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, patience_ms);
        this.#idle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const stopped = new Cancelled("the extension was stopped before it had an answer");
    for (const run of this.#unfinished) {
      run.settle({ error: stopped });
      run.cancel();
    }
  }

  async #run(run: FunctionRun): Promise<void> {
    await run.run();
    this.#unfinished.delete(run);
    if (this.#unfinished.size === 0) this.#idle();
  }
}
