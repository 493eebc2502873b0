/**
 * The tools, commands, event handlers, guards and panels of an extension. Registering a name again replaces it.
 *
 * @module
 */

import { ArgumentError, convertMembers, shown, type Args } from "./args.ts";
import type { Call, CommandCall } from "./calls.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { Panel } from "./panel.ts";
import type { Lane } from "./work.ts";
import type { Event, EventIntercept, HelloAck, RegisterTool } from "./wire.ts";

/** Capabilities of this SDK, announced in `hello` in addition to those of the extension. */
const CAPABILITIES = ["panels", "tool_cancel", "tool_progress", "call_tool", "ui"] as const;

export interface RegisteredTool {
  run: (args: JsonObject, call: Call) => unknown;
  /** The frame that registers it. */
  frame: RegisterTool;
  /** Absent if the author has supplied the schema; arguments are then passed on unchecked. */
  args: Args | undefined;
  /** Set for `parallel: false`, to run its calls one after another. */
  lane: Lane | undefined;
}

export class Registry {
  readonly tools = new Map<string, RegisteredTool>();
  readonly commands = new Map<string, (args: string, call: CommandCall) => unknown>();
  readonly handlers = new Map<string, ((event: Event) => unknown)[]>();
  readonly guards = new Map<string, (event: EventIntercept) => unknown>();
  readonly panels = new Map<string, Panel>();
  onHello: ((hello: HelloAck) => unknown) | undefined;

  /** The capabilities for the frame `hello`. */
  capabilities(): string[] {
    const offered = {
      commands: this.commands.size,
      tools: this.tools.size,
      events: this.handlers.size + this.guards.size,
    };
    return [...Object.entries(offered).flatMap(([name, count]) => (count > 0 ? [name] : [])), ...CAPABILITIES];
  }
}

/** The arguments that a tool's function gets. @throws ArgumentError: they do not fit. */
export function argumentsOf(tool: RegisteredTool, given: unknown): JsonObject {
  if (!isObject(given)) throw new ArgumentError(`the arguments must be an object, not ${shown(given)}`);
  return tool.args === undefined ? given : convertMembers(tool.args, given);
}
