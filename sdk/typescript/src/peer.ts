/**
 * The extension's side of the protocol: receives frames, runs handlers, answers each request exactly once.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";

import { commandResponse, isExpected, toolError, toolResult, verdict } from "./answers.ts";
import { Call, HostCalls } from "./calls.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { Panel } from "./panel.ts";
import { HostPipe, log, logError, messageOf } from "./pipe.ts";
import { argumentsOf, Registry } from "./registry.ts";
import { OpenPanel } from "./values.ts";
import { FunctionRun, Lane, Workers, type Outcome } from "./work.ts";
import type {
  CommandInvoked,
  Event,
  EventIntercept,
  EventInterceptResponse,
  HelloAck,
  PanelKey,
  PanelResize,
  ToExtension,
  ToolCall,
} from "./wire.ts";

/** How long handlers may continue after `shutdown` or the end of stdin. The host waits 2 s for the exit. */
const GRACE_MS = 1500;

/** How long the author's code may take after that; together with the grace it stays under the host's 2 s. */
const LAST_WORDS_MS = 200;

/** Frames that are handled even during preparation, because they answer requests of the extension. */
const NEVER_HELD: readonly string[] = ["hello_ack", "tool_result"];

const NO_HELLO: HelloAck = {
  type: "hello_ack",
  protocol_version: 1,
  zot_version: "",
  provider: "",
  model: "",
  cwd: "",
  extension_dir: "",
  data_dir: "",
  capabilities: [],
  features: [],
};

export class HostPeer {
  readonly registry = new Registry();
  readonly pipe = new HostPipe();
  readonly calls = new HostCalls(this.pipe);
  readonly #name: string;
  readonly #version: string;
  readonly #workers = new Workers();
  readonly #events = new Lane();
  readonly #running = new Map<string, FunctionRun>();
  readonly #unknown = new Set<string>();
  #held: ToExtension[] | undefined;
  #hello = NO_HELLO;

  constructor(name: string, version: string) {
    this.#name = name;
    this.#version = version;
  }

  /** The host's `hello_ack`; empty until it has arrived. */
  get hello(): HelloAck {
    return this.#hello;
  }

  /** Route the panel's keys to its handlers. */
  show(panel: Panel): void {
    this.registry.panels.set(panel.id, panel);
    panel.opened(this.pipe);
  }

  /** Serve until the host ends it. */
  async run(): Promise<void> {
    const capabilities = this.registry.capabilities();
    this.pipe.open({ type: "hello", name: this.#name, version: this.#version, capabilities });
    if (this.registry.onHello === undefined) this.pipe.send({ type: "ready" });
    let isShutdown = false;
    for await (const frame of this.pipe.frames()) {
      isShutdown = frame["type"] === "shutdown";
      if (isShutdown) break;
      // Of the shape that its type has, or of one that is caught in `#dispatch`.
      this.#receive(frame as unknown as ToExtension);
    }
    this.calls.abandon(); // their answers are no longer read
    await this.#workers.close(GRACE_MS);
    if (isShutdown) this.pipe.send({ type: "shutdown_ack" });
    // Timers and connections of the author would keep the process until the host kills it.
    setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
  }

  #receive(frame: ToExtension): void {
    if (this.#held !== undefined && !NEVER_HELD.includes(frame.type)) this.#held.push(frame);
    else this.#dispatch(frame);
  }

  #dispatch(frame: ToExtension): void {
    try {
      this.#handle(frame);
    } catch (error) {
      logError(error); // one malformed frame must not end the extension
    }
  }

  #handle(frame: ToExtension): void {
    switch (frame.type) {
      case "hello_ack":
        return this.#helloAck(frame);
      case "tool_call":
        return this.#toolCall(frame);
      case "tool_cancel":
        return this.#running.get(frame.id)?.cancel();
      case "tool_result":
        return this.calls.answered(frame);
      case "command_invoked":
        return this.#commandInvoked(frame);
      case "event":
        return this.#event(frame);
      case "event_intercept":
        return this.#eventIntercept(frame);
      case "panel_key":
      case "panel_resize":
        return this.#panelInput(frame);
      case "panel_close":
        return this.#panelClose(frame.panel_id);
      default:
        return this.#ignore(String((frame as { type?: unknown }).type ?? ""));
    }
  }

  #ignore(type: string): void {
    // Logged once for each type, because a newer host may send it often.
    if (this.#unknown.has(type)) return;
    this.#unknown.add(type);
    log(`ignored a frame of the unknown type '${type}' from the host`);
  }

  #helloAck(frame: HelloAck): void {
    this.#hello = { ...NO_HELLO, ...frame };
    const handler = this.registry.onHello;
    if (handler === undefined) return;
    // Requests wait until it has returned, because they may need what it sets up.
    this.#held = [];
    this.#workers.start(new FunctionRun(() => handler(this.#hello), (outcome) => this.#prepared(outcome)));
  }

  #prepared(outcome: Outcome): void {
    logFailure(outcome);
    this.pipe.send({ type: "ready" });
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const frame of held) this.#dispatch(frame);
  }

  #toolCall(frame: ToolCall): void {
    const tool = this.registry.tools.get(frame.name);
    if (tool === undefined) {
      // It may have been unregistered while the call was on its way.
      this.pipe.send(toolError(frame.id, new Error(`this extension has no tool ${frame.name}`)));
      return;
    }
    const { id, session_id } = frame;
    const isStructured = tool.frame.output_schema !== undefined;
    const settled = (outcome: Outcome) => {
      this.#running.delete(id);
      this.#answerTool(id, outcome, isStructured);
    };
    const run = new FunctionRun(
      (signal) => tool.run(argumentsOf(tool, frame.args ?? {}), new Call(frame, signal, this.pipe)),
      settled,
      { session_id, call_id: id },
    );
    this.#running.set(id, run);
    this.#workers.start(run, tool.lane);
  }

  #answerTool(id: string, outcome: Outcome, isStructured: boolean): void {
    let failure: unknown;
    try {
      if ("value" in outcome) return this.pipe.send(toolResult(id, outcome.value, isStructured));
      failure = outcome.error;
    } catch (fault) {
      failure = fault; // not JSON, or longer than the host reads
    }
    if (!isExpected(failure)) logError(failure);
    this.pipe.send(toolError(id, failure));
  }

  #commandInvoked(frame: CommandInvoked): void {
    const { id, name, session_id } = frame;
    const command = this.registry.commands.get(name);
    if (command === undefined) {
      // It may have been unregistered while the call was on its way.
      this.pipe.send(commandResponse(id, { error: new Error(`this extension has no command /${name}`) }));
      return;
    }
    const settled = (outcome: Outcome) => {
      logFailure(outcome);
      // First, because its keys may arrive at once.
      if ("value" in outcome && outcome.value instanceof OpenPanel) this.show(outcome.value.panel);
      this.pipe.send(commandResponse(id, outcome));
    };
    const about = { session_id, call_id: id };
    this.#workers.start(new FunctionRun(() => command(frame.args ?? "", frame), settled, about));
  }

  #event(frame: Event): void {
    const about = { session_id: frame.session_id };
    for (const handler of this.registry.handlers.get(frame.event) ?? []) {
      // One lane for all, so that handlers see events in the order in which they happened.
      this.#workers.start(new FunctionRun(() => handler(frame), logFailure, about), this.#events);
    }
  }

  #eventIntercept(frame: EventIntercept): void {
    const guard = this.registry.guards.get(frame.event);
    const settled = (outcome: Outcome) => {
      const fields = this.#verdict(frame.event, outcome);
      this.pipe.send({ type: "event_intercept_response", id: frame.id, ...fields });
    };
    // Every question needs an answer, or the host would wait for its timeout.
    if (guard === undefined) settled({ value: undefined });
    else this.#workers.start(new FunctionRun(() => guard(frame), settled, { session_id: frame.session_id }));
  }

  #verdict(event: string, outcome: Outcome): Partial<EventInterceptResponse> {
    let failure: unknown;
    try {
      if ("value" in outcome) return verdict(event, outcome.value);
      failure = outcome.error;
    } catch (fault) {
      failure = fault;
    }
    logError(failure);
    // A guard that fails has not decided. Answering at once spares the host its timeout.
    if (onFailure(this.#hello.extension_dir)[event] !== "closed") return {};
    return { block: true, reason: `${this.#name} could not decide: ${messageOf(failure)}` };
  }

  #panelInput(frame: PanelKey | PanelResize): void {
    const panel = this.registry.panels.get(frame.panel_id);
    if (panel === undefined) return;
    const run = () =>
      frame.type === "panel_key"
        ? panel.onKey?.(frame.key, frame.text ?? "")
        : panel.onResize?.(frame.width, frame.height);
    this.#workers.start(new FunctionRun(run, logFailure, { session_id: frame.session_id }), panel.lane);
  }

  #panelClose(id: string): void {
    const panel = this.registry.panels.get(id);
    if (panel === undefined) return;
    this.registry.panels.delete(id);
    panel.closed();
    this.#workers.start(new FunctionRun(() => panel.onClose?.(), logFailure), panel.lane);
  }
}

function logFailure(outcome: Outcome): void {
  if ("error" in outcome) logError(outcome.error);
}

/** `on_failure` of the manifest, by event; empty if it cannot be read. */
function onFailure(extensionDir: string): JsonObject {
  const directory = extensionDir || dirname(process.argv[1] ?? "");
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(directory, "extension.json"), "utf8"));
    const modes = isObject(manifest) ? manifest["on_failure"] : undefined;
    return isObject(modes) ? modes : {};
  } catch {
    return {};
  }
}
