/**
 * Makes frames for the host of what handlers return.
 *
 * @module
 */

import { Buffer } from "node:buffer";

import { ArgumentError } from "./args.ts";
import { jsonText, named } from "./json.ts";
import { messageOf } from "./pipe.ts";
import { Decision, Display, Image, Insert, Noop, OpenPanel, Prompt, Result } from "./values.ts";
import { Cancelled, type Outcome } from "./work.ts";
import type { CommandResponse, EventInterceptResponse, ToolResult } from "./wire.ts";

/** Fields of a guard's answer that have an effect, by event (`docs/extensions.md`). */
const DECISIONS: Readonly<Record<string, readonly string[]>> = {
  user_prompt_submit: ["block", "reason", "context"],
  tool_call: ["block", "reason", "modified_args", "permission"],
  tool_result: ["context"],
  turn_start: ["block", "reason"],
  assistant_message: ["block", "reason", "replace_text"],
  before_agent_start: ["system_prompt"],
};

/** Whether an error is the model's or the user's, and needs no stack in the log. */
export function isExpected(error: unknown): boolean {
  return error instanceof ArgumentError || error instanceof Cancelled;
}

/**
 * The result of a tool. `isStructured`: the tool has an output schema, so a JSON value is also its structured result.
 *
 * @throws TypeError: the value is neither JSON nor an image.
 */
export function toolResult(id: string, value: unknown, isStructured: boolean): ToolResult {
  const result = resultOf(value);
  const images = result.images.map(({ mime_type, data }) => ({
    type: "image",
    mime_type,
    data: Buffer.from(data).toString("base64"),
  }));
  // A result needs at least one block; an empty text beside an image would be noise.
  const texts = result.text || images.length === 0 ? [{ type: "text", text: result.text }] : [];
  const structured = isStructured && !(value instanceof Result) ? value : result.structured;
  return {
    type: "tool_result",
    id,
    content: [...texts, ...images],
    is_error: result.is_error,
    ...(structured === undefined || structured === null ? {} : { structured_content: structured }),
    ...(result.activate_tools.length > 0 ? { activate_tools: result.activate_tools } : {}),
  };
}

/** The result of a tool that has failed. */
export function toolError(id: string, error: unknown): ToolResult {
  return toolResult(id, new Result(messageOf(error), { is_error: true }), false);
}

/** The answer to a slash command. */
export function commandResponse(id: string, outcome: Outcome): CommandResponse {
  const frame: CommandResponse = { type: "command_response", id, action: "noop" };
  if ("error" in outcome) return { ...frame, error: messageOf(outcome.error) };
  const { value } = outcome;
  if (value instanceof Prompt) return { ...frame, action: "prompt", prompt: value.text };
  if (value instanceof Insert) return { ...frame, action: "insert", insert: value.text };
  if (value instanceof OpenPanel) return { ...frame, action: "open_panel", open_panel: value.panel.content() };
  const text = value instanceof Display ? value.text : value;
  if (value instanceof Noop || text === undefined || text === null || text === "") return frame;
  if (typeof text === "string") return { ...frame, action: "display", display: text };
  const may = "it may return text, Prompt, Insert, Display, Noop or OpenPanel";
  return { ...frame, error: `the command returned ${named(value)}; ${may}` };
}

/**
 * The fields of a guard's answer; none if it allows.
 *
 * @throws TypeError: the value is not a decision about this event, or not JSON.
 */
export function verdict(event: string, value: unknown): Partial<EventInterceptResponse> {
  if (value === undefined || value === null) return {};
  if (!(value instanceof Decision)) {
    throw new TypeError(`the guard of ${event} returned ${named(value)}, not a Decision or nothing`);
  }
  // The host would ignore such a field silently, and the author would believe that the event was blocked.
  const possible = DECISIONS[event];
  const wrong = Object.keys(value.fields).filter((field) => possible !== undefined && !possible.includes(field));
  if (wrong.length > 0) {
    throw new TypeError(`the guard of ${event} decided about ${wrong.join(", ")}, which this event does not have`);
  }
  jsonText(value.fields); // fails here, where `on_failure` can still decide
  return value.fields;
}

function resultOf(value: unknown): Result {
  if (value instanceof Result) return value;
  if (value instanceof Image) return new Result("", { images: [value] });
  if (value instanceof Uint8Array) return new Result("", { images: [Image.fromBytes(value)] });
  if (value === undefined || value === null) return new Result();
  return new Result(typeof value === "string" ? value : jsonText(value));
}
