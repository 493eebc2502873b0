/**
 * What handlers return, independent of the protocol.
 *
 * @module
 */

import type { Panel } from "./panel.ts";

const SIGNATURES: readonly (readonly [readonly number[], string])[] = [
  [[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], "image/png"],
  [[0xff, 0xd8, 0xff], "image/jpeg"],
  [[0x47, 0x49, 0x46, 0x38], "image/gif"],
];

/**
 * An image in the result of a tool.
 *
 * @example
 * ext.tool("screenshot", { description: "Take a picture." }, async () => Image.fromBytes(await readFile("shot.png")));
 */
export class Image {
  /** Bytes of the image file, not base64. */
  readonly data: Uint8Array;
  readonly mime_type: string;

  constructor(data: Uint8Array, mime_type: string) {
    this.data = data;
    this.mime_type = mime_type;
  }

  /**
   * An image from the bytes of its file.
   *
   * @throws TypeError: `mime_type` is not given and the bytes are not PNG, JPEG, GIF or WebP.
   *
   * @example
   * return Image.fromBytes(await readFile("map.webp"));
   */
  static fromBytes(data: Uint8Array, mime_type = imageType(data)): Image {
    if (mime_type === undefined) {
      throw new TypeError("the bytes are no PNG, JPEG, GIF or WebP image; name the type: Image.fromBytes(data, type)");
    }
    return new Image(data, mime_type);
  }
}

function imageType(data: Uint8Array): string | undefined {
  const text = (from: number, to: number) => String.fromCharCode(...data.subarray(from, to));
  if (text(0, 4) === "RIFF" && text(8, 12) === "WEBP") return "image/webp";
  return SIGNATURES.find(([start]) => start.every((byte, index) => data[index] === byte))?.[1];
}

/**
 * The result of a tool: returned by a tool's function, and by {@link Extension.callTool}.
 *
 * @example
 * return new Result("the chart of May", { images: [Image.fromBytes(chart)] });
 */
export class Result {
  readonly text: string;
  readonly images: readonly Image[];
  /** The result as JSON, for a tool with `output_schema`. */
  readonly structured: unknown;
  readonly is_error: boolean;
  /** Names of deferred tools to show to the model from now on. */
  readonly activate_tools: readonly string[];
  /** Set by the host on the answer to `callTool` when it cut the result. */
  readonly truncated: boolean;

  constructor(
    text = "",
    more: {
      images?: readonly Image[];
      structured?: unknown;
      is_error?: boolean;
      activate_tools?: readonly string[];
      truncated?: boolean;
    } = {},
  ) {
    this.text = text;
    this.images = more.images ?? [];
    this.structured = more.structured;
    this.is_error = more.is_error ?? false;
    this.activate_tools = more.activate_tools ?? [];
    this.truncated = more.truncated ?? false;
  }
}

/**
 * The decision of a guard. To allow, a guard returns nothing instead.
 *
 * @example
 * ext.guard("turn_start", (event) => (event.step > 50 ? Decision.block("50 steps are enough") : undefined));
 */
export class Decision {
  /** Fields of the frame `event_intercept_response`. */
  readonly fields: Readonly<Record<string, unknown>>;

  private constructor(fields: Readonly<Record<string, unknown>>) {
    this.fields = fields;
  }

  /**
   * Refuse; `reason` is read by the model (a tool call) or by the user (a turn, a message).
   *
   * @example
   * return Decision.block("pushing is for people");
   */
  static block(reason: string): Decision {
    return new Decision({ block: true, reason });
  }

  /**
   * Run the tool with these arguments instead; only for `tool_call`.
   *
   * @example
   * return Decision.args({ ...event.tool_args, timeout_s: 60 });
   */
  static args(args: Readonly<Record<string, unknown>>): Decision {
    return new Decision({ modified_args: args });
  }

  /**
   * Show the user this text instead; only for `assistant_message`.
   *
   * @example
   * return Decision.text(event.text.replaceAll(secret, "…"));
   */
  static text(text: string): Decision {
    return new Decision({ replace_text: text });
  }

  /**
   * Show the model this text beside the prompt or the result; for `user_prompt_submit` and `tool_result`.
   *
   * @example
   * return Decision.context("The build is red.");
   */
  static context(text: string): Decision {
    return new Decision({ context: text });
  }

  /**
   * Have a person decide about the call, whatever the session's mode; only for `tool_call`.
   *
   * @example
   * return Decision.ask("it deploys");
   */
  static ask(reason: string): Decision {
    return new Decision({ permission: "ask", reason });
  }

  /**
   * Run the call without the question that the session's mode would ask; only for `tool_call`. Rules, the mode
   * `read-only` and the border of a jail still decide.
   *
   * @example
   * return Decision.allow();
   */
  static allow(): Decision {
    return new Decision({ permission: "allow" });
  }

  /**
   * Use this system prompt instead; only for `before_agent_start`, at most 1 MiB.
   *
   * @example
   * return Decision.systemPrompt(`${event.system_prompt}\nAnswer in Latin.`);
   */
  static systemPrompt(text: string): Decision {
    return new Decision({ system_prompt: text });
  }
}

/**
 * A command's answer: submit `text` as a message of the user.
 *
 * @example
 * ext.command("release", "make a release", (version) => new Prompt(`Make the release ${version}.`));
 */
export class Prompt {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A command's answer: put `text` into the user's editor, at the cursor.
 *
 * @example
 * ext.command("today", "insert the date", () => new Insert(new Date().toDateString()));
 */
export class Insert {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A command's answer: show `text` once; no model call, nothing in the transcript. A string does the same.
 *
 * @example
 * ext.command("uptime", "how long this extension has run", () => new Display(`${process.uptime()} s`));
 */
export class Display {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A command's answer: nothing is left to do. Returning nothing does the same.
 *
 * @example
 * ext.command("quiet", "remove the notes", () => (ext.clearNotes(), new Noop()));
 */
export class Noop {}

/**
 * A command's answer: open a panel.
 *
 * @example
 * ext.command("todo", "show the list", () => new OpenPanel(panel));
 */
export class OpenPanel {
  readonly panel: Panel;

  constructor(panel: Panel) {
    this.panel = panel;
  }
}
