/**
 * The SDK for extensions written in TypeScript or JavaScript.
 *
 * No dependencies. The sources use only syntax that can be erased, so Node 22.18 and newer, Bun and Deno run them as they
 * are; this directory can be copied beside an extension, under any name.
 *
 * @example
 * import { arg, Extension } from "./zot_sdk/index.ts";
 *
 * const ext = new Extension("weather", "1.0.0");
 *
 * ext.tool("weather", { description: "Current weather of a city.", args: { city: arg.string() } }, ({ city }) => {
 *   return `${city}: 16 °C, fog`;
 * });
 *
 * await ext.run();
 *
 * @module
 */

export { arg, ArgumentError, objectSchema, type Arg, type Args, type Values } from "./args.ts";
export type { Call, CommandCall } from "./calls.ts";
export {
  Extension,
  type CommandValue,
  type ForSession,
  type GuardValue,
  type Level,
  type Questions,
  type ToolOptions,
  type ToolValue,
} from "./extension.ts";
export type { JsonObject } from "./json.ts";
export { Panel, type PanelOptions } from "./panel.ts";
export { Decision, Display, Image, Insert, Noop, OpenPanel, Prompt, Result } from "./values.ts";
export type { Event, EventIntercept, HelloAck } from "./wire.ts";
