/**
 * A panel: lines that an extension shows in the user's terminal, with handlers for keys.
 *
 * @module
 */

import type { HostPipe } from "./pipe.ts";
import { Lane } from "./work.ts";
import type { Panel as PanelContent } from "./wire.ts";

/** What a panel shows and does. */
export interface PanelOptions {
  title?: string;
  lines?: readonly string[];
  footer?: string;
  /** Called with a key (`up`, `enter`, `esc`, `rune` …) and, for `rune`, the typed text. */
  onKey?: (key: string, text: string) => unknown;
  /** Called with the panel's new width and height, in columns and rows. */
  onResize?: (width: number, height: number) => unknown;
  /** Called when the user has closed the panel. */
  onClose?: () => unknown;
}

/**
 * One panel. Open it with {@link Extension.openPanel} or as a command's answer, `new OpenPanel(panel)`. Its handlers run
 * one after another, in the order of the keys.
 *
 * @example
 * const panel = new Panel("keys", {
 *   title: "Keys",
 *   onKey: (key, text) => (key === "esc" ? panel.close() : panel.render({ lines: [text || key] })),
 * });
 */
export class Panel {
  readonly id: string;
  readonly onKey: PanelOptions["onKey"];
  readonly onResize: PanelOptions["onResize"];
  readonly onClose: PanelOptions["onClose"];
  /** For the SDK: its handlers run in this lane. */
  readonly lane = new Lane();
  #shown: { title: string; lines: readonly string[]; footer: string };
  #pipe: HostPipe | undefined;

  constructor(id: string, { title = "", lines = [], footer = "", onKey, onResize, onClose }: PanelOptions = {}) {
    this.id = id;
    this.onKey = onKey;
    this.onResize = onResize;
    this.onClose = onClose;
    this.#shown = { title, lines: [...lines], footer };
  }

  /** The lines that it shows. */
  get lines(): readonly string[] {
    return this.#shown.lines;
  }

  /**
   * Change the given parts. Before the panel is open, this sets its initial contents.
   *
   * @example
   * panel.render({ lines: ["> milk", "  bread"], footer: "esc closes" });
   */
  render(parts: Pick<PanelOptions, "title" | "lines" | "footer">): void {
    this.#shown = { ...this.#shown, ...parts };
    this.#pipe?.send({ type: "panel_render", panel_id: this.id, ...this.#shown });
  }

  /**
   * Close the panel if it is open. Does not call `onClose`, which is for closing by the user.
   *
   * @example
   * panel.close();
   */
  close(): void {
    this.#pipe?.send({ type: "panel_close", panel_id: this.id });
    this.#pipe = undefined;
  }

  /** For the SDK: the contents, as frames have them. */
  content(): PanelContent {
    return { id: this.id, ...this.#shown };
  }

  /** For the SDK: the panel appears. */
  opened(pipe: HostPipe): void {
    this.#pipe = pipe;
  }

  /** For the SDK: the user has closed the panel. */
  closed(): void {
    this.#pipe = undefined;
  }
}
