/**
 * `Extension`, the public interface of the SDK.
 *
 * @module
 */

import { objectSchema, type Args, type Values } from "./args.ts";
import type { Call, CommandCall } from "./calls.ts";
import type { JsonObject } from "./json.ts";
import type { Panel } from "./panel.ts";
import { HostPeer } from "./peer.ts";
import { log, printToLog } from "./pipe.ts";
import type { Decision, Display, Image, Insert, Noop, OpenPanel, Prompt, Result } from "./values.ts";
import { Lane, origin } from "./work.ts";
import type { Event, EventIntercept, HelloAck, RegisterTool } from "./wire.ts";

const LEVELS = ["info", "success", "warn", "error"] as const;

const OPTIONS = [
  "args",
  "deferred",
  "description",
  "exposure",
  "interactive",
  "namespace",
  "output_schema",
  "parallel",
  "replay",
  "schema",
];

/** How a note looks. */
export type Level = (typeof LEVELS)[number];

/** What is told about a tool; the fields of `register_tool` (`docs/extensions.md`). */
export interface ToolOptions {
  /** What it does, for the model. */
  description: string;
  /** What recovery may do with a call whose outcome is unknown. */
  replay?: "never" | "safe" | "idempotent" | "reconcile";
  /** With `false`, calls run one after another. */
  parallel?: boolean;
  output_schema?: JsonObject;
  namespace?: string;
  exposure?: "direct" | "deferred" | "model-only";
  deferred?: boolean;
  interactive?: boolean;
}

/** What a tool's function returns: text, a `Result`, an `Image`, the bytes of one, or any JSON value. */
export type ToolValue = Result | Image | Uint8Array | string | number | boolean | object | null | undefined | void;

/** What a command returns: text to display, or what else is to happen. */
export type CommandValue = Prompt | Insert | Display | Noop | OpenPanel | string | null | undefined | void;

type Having<Field extends keyof EventIntercept> = EventIntercept & Required<Pick<EventIntercept, Field>>;

/** What a guard is asked, by event. */
export interface Questions {
  user_prompt_submit: Having<"text">;
  tool_call: Having<"tool_id" | "tool_name" | "tool_args">;
  tool_result: Having<"tool_id" | "tool_name" | "result">;
  turn_start: Having<"step">;
  assistant_message: Having<"text">;
  before_agent_start: Having<"system_prompt">;
}

/** What a guard returns: nothing to allow, or a `Decision`. */
export type GuardValue = Decision | null | undefined | void;

/** For which session something is shown or done. */
export interface ForSession {
  session_id?: string;
}

/**
 * An extension of zot: register functions, then `run()`.
 *
 * Functions may be registered at any time, also while the extension runs. A name that is registered again replaces the
 * earlier function. Handlers may be async, and then run beside each other.
 *
 * @example
 * const ext = new Extension("weather", "1.0.0");
 * ext.tool("weather", { description: "Current weather of a city.", args: { city: arg.string() } }, ({ city }) => `${city}: fog`);
 * await ext.run();
 */
export class Extension {
  readonly #peer: HostPeer;

  /** From here on `console.log` and `process.stdout` write to stderr, which is the extension's log. */
  constructor(name: string, version = "0.0.0") {
    printToLog();
    this.#peer = new HostPeer(name, version);
  }

  /** The host's `hello_ack`; its fields are empty until it has arrived. */
  get hello(): HelloAck {
    return this.#peer.hello;
  }

  /**
   * Register a tool for the model.
   *
   * The function gets the arguments and the {@link Call}. It returns text, a {@link Result}, an {@link Image} or any JSON
   * value; an error that it throws is reported to the model. `args` describes the arguments and checks them; with a
   * `schema` of your own they are passed on unchecked.
   *
   * @throws TypeError: an unknown option, in a program without a type checker.
   *
   * @example
   * ext.tool(
   *   "tag",
   *   { description: "Tag a release.", args: { version: arg.string() }, parallel: false },
   *   async ({ version }, call) => {
   *     call.progress("looking at the version");
   *     return `tagged ${version}`;
   *   },
   * );
   *
   * @example
   * ext.tool(
   *   "count",
   *   { description: "Count words.", schema: { type: "object", properties: { text: { type: "string" } } } },
   *   ({ text }) => String(text).split(/\s+/).length,
   * );
   */
  tool<A extends Args = Record<never, never>>(
    name: string,
    options: ToolOptions & { args?: A; schema?: never },
    run: (args: Values<A>, call: Call) => ToolValue | Promise<ToolValue>,
  ): void;
  tool(
    name: string,
    options: ToolOptions & { schema: JsonObject; args?: never },
    run: (args: JsonObject, call: Call) => ToolValue | Promise<ToolValue>,
  ): void;
  tool(
    name: string,
    options: ToolOptions & { args?: Args | undefined; schema?: JsonObject | undefined },
    run: (args: never, call: Call) => unknown,
  ): void {
    const unknown = Object.keys(options).filter((option) => !OPTIONS.includes(option));
    if (unknown.length > 0) {
      throw new TypeError(`a tool has no option ${unknown.join(", ")}; there are ${OPTIONS.join(", ")}`);
    }
    const { args, schema, ...told } = options;
    const checked = schema === undefined ? (args ?? {}) : undefined;
    const frame: RegisterTool = {
      type: "register_tool",
      name,
      schema: schema ?? objectSchema(args ?? {}),
      replay: "never",
      parallel: true,
      ...told,
    };
    const lane = frame.parallel === false ? new Lane() : undefined;
    // `Values<A>` is what `convertMembers` makes of `A`; the overloads have told the author.
    const tool = { run: run as (args: JsonObject, call: Call) => unknown, frame, args: checked, lane };
    this.#peer.registry.tools.set(name, tool);
    this.#peer.pipe.send(frame);
  }

  /**
   * Register the slash command `/name`.
   *
   * The function gets the text after the name, and where it was typed. It returns text to display, {@link Prompt},
   * {@link Insert}, {@link Display}, {@link Noop} or {@link OpenPanel}; an error that it throws is shown to the user.
   *
   * @example
   * ext.command("release", "Have the model make a release.", (version) => new Prompt(`Make the release ${version}.`));
   */
  command(
    name: string,
    description: string,
    run: (args: string, call: CommandCall) => CommandValue | Promise<CommandValue>,
  ): void {
    this.#peer.registry.commands.set(name, run);
    this.#peer.pipe.send({ type: "register_command", name, description });
  }

  /**
   * Follow an event (`docs/extensions.md` has their fields). Handlers run one after another, in the order of the events.
   *
   * @example
   * ext.on("turn_end", (event) => ext.setStatus("turn", `ended: ${event.stop}`));
   */
  on(event: string, run: (event: Event) => unknown): void {
    const { handlers } = this.#peer.registry;
    handlers.set(event, [...(handlers.get(event) ?? []), run]);
    this.#peer.pipe.send({ type: "subscribe", events: [event], intercept: [] });
  }

  /**
   * Decide about something before it happens: a tool call, a turn, a reply, the system prompt.
   *
   * The function returns nothing to allow, or a {@link Decision}. If it throws, the manifest's `on_failure` decides.
   *
   * @example
   * ext.guard("tool_call", (event) => {
   *   if (event.tool_name === "bash" && String(event.tool_args["command"]).includes("git push")) {
   *     return Decision.block("pushing is for people");
   *   }
   * });
   */
  guard<E extends keyof Questions>(event: E, run: (event: Questions[E]) => GuardValue | Promise<GuardValue>): void {
    // The host asks about this event with the fields that `Questions` names for it.
    this.#peer.registry.guards.set(event, run as (event: EventIntercept) => unknown);
    this.#peer.pipe.send({ type: "subscribe", events: [], intercept: [event] });
  }

  /**
   * Run a function once after the host's `hello_ack`, which it gets.
   *
   * Its registrations are available from the start, and no call is handled before it has returned.
   *
   * @example
   * ext.onHello(async (host) => {
   *   notes = await readFile(join(host.data_dir, "notes.txt"), "utf8");
   * });
   */
  onHello(run: (hello: HelloAck) => unknown): void {
    this.#peer.registry.onHello = run;
  }

  /**
   * Take a tool or a command back.
   *
   * @example
   * ext.unregister("tool", "tag");
   */
  unregister(kind: "tool" | "command", name: string): void {
    const { tools, commands } = this.#peer.registry;
    (kind === "tool" ? tools : commands).delete(name);
    this.#peer.pipe.send({ type: "unregister", kind, name });
  }

  /**
   * Serve until the host sends `shutdown` or closes stdin; handlers then have 1.5 s to finish. The process ends 0.2 s
   * after that, even if a timer or a connection would keep it.
   *
   * stdin and stdout are used by the protocol. Give children another stdin and stdout than `"inherit"`.
   *
   * @example
   * await ext.run();
   */
  async run(): Promise<void> {
    await this.#peer.run();
  }

  /**
   * Show a note below the transcript.
   *
   * This and the following methods apply to the session whose call is being answered, unless one is named. What the
   * extension has started by itself, outside of a handler, applies to all sessions of the workspace.
   *
   * @throws TypeError: there is no such level.
   *
   * @example
   * ext.notify("warn", "the disk is nearly full");
   */
  notify(level: Level, text: string, about: ForSession = {}): void {
    if (!LEVELS.includes(level)) {
      throw new TypeError(`a note has no level '${level}'; there are ${LEVELS.join(", ")}`);
    }
    this.#peer.pipe.send({ type: "notify", level, message: text, ...session(about) });
  }

  /**
   * Remove the notes of this extension.
   *
   * @example
   * ext.clearNotes();
   */
  clearNotes(about: ForSession = {}): void {
    this.#peer.pipe.send({ type: "clear_notes", ...session(about) });
  }

  /**
   * Queue a prompt in the session; text that begins with `/` runs that slash command.
   *
   * @example
   * ext.submit("The build has failed. Look into build.log.");
   */
  submit(text: string, about: ForSession = {}): void {
    this.#peer.pipe.send({ type: text.startsWith("/") ? "submit_slash" : "submit", text, ...session(about) });
  }

  /**
   * Show a segment of the status bar; empty text removes it.
   *
   * @example
   * ext.setStatus("tests", "3 failed");
   */
  setStatus(key: string, text: string, about: ForSession = {}): void {
    this.#peer.pipe.send({ type: "set_status", key, text, ...session(about) });
  }

  /**
   * Open a panel; a command opens one by returning `new OpenPanel(panel)`.
   *
   * @example
   * ext.openPanel(new Panel("news", { title: "News", lines: ["a new version"] }));
   */
  openPanel(panel: Panel, about: ForSession = {}): void {
    this.#peer.show(panel);
    this.#peer.pipe.send({ type: "open_panel", panel: panel.content(), ...session(about) });
  }

  /**
   * Ask the host to run a tool, subject to guards and approvals.
   *
   * A failed tool gives a {@link Result} with `is_error`. Rejects only when `signal` is aborted, which also ends the tool;
   * by default that is the signal of the call that is being answered.
   *
   * @example
   * const page = await ext.callTool("read", { path: "README.md" }, { signal: AbortSignal.timeout(5000) });
   */
  async callTool(name: string, args: JsonObject = {}, options: { signal?: AbortSignal } = {}): Promise<Result> {
    const about = origin();
    // The call that is being answered becomes the parent, so that the host can follow the chain.
    return await this.#peer.calls.start(name, args, about, options.signal ?? about.signal);
  }

  /**
   * Write a line to the extension's log.
   *
   * @example
   * ext.log("connected");
   */
  log(text: string): void {
    log(text);
  }
}

function session(about: ForSession): ForSession {
  const session_id = about.session_id ?? origin().session_id;
  return session_id === undefined ? {} : { session_id };
}
