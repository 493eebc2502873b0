// An extension in TypeScript, without an SDK: types for the few frames it needs, and one function for each.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

type FromHost =
  | { type: "hello_ack"; data_dir?: string }
  | { type: "command_invoked"; id: string; name: string; args: string }
  | { type: "tool_call"; id: string; name: string; args: { containing?: string } }
  | { type: "shutdown" };

type ToHost =
  | { type: "hello"; name: string; version: string; capabilities: string[] }
  | { type: "register_command"; name: string; description: string }
  | { type: "register_tool"; name: string; description: string; schema: object; replay: "safe" }
  | { type: "ready" }
  | { type: "command_response"; id: string; action: "display" | "noop"; display?: string; error?: string }
  | { type: "tool_result"; id: string; content: { type: "text"; text: string }[] }
  | { type: "shutdown_ack" };

let file = "notes.txt";

function send(frame: ToHost): void {
  process.stdout.write(JSON.stringify(frame) + "\n");
}

function notes(): string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

function take(note: string): string {
  appendFileSync(file, note + "\n");
  return `noted (${notes().length} so far)`;
}

function receive(frame: FromHost): void {
  switch (frame.type) {
    case "hello_ack":
      file = join(frame.data_dir ?? ".", "notes.txt");
      break;
    case "command_invoked":
      send(
        frame.args
          ? { type: "command_response", id: frame.id, action: "display", display: take(frame.args) }
          : { type: "command_response", id: frame.id, action: "noop", error: "nothing to note: /note TEXT" },
      );
      break;
    case "tool_call": {
      const found = notes().filter((note) => note.includes(frame.args.containing ?? ""));
      send({ type: "tool_result", id: frame.id, content: [{ type: "text", text: found.join("\n") || "no notes" }] });
      break;
    }
    case "shutdown":
      send({ type: "shutdown_ack" });
      lines.close();
      process.stdin.destroy();
  }
}

send({ type: "hello", name: "scratchpad", version: "1.0.0", capabilities: ["commands", "tools"] });
send({ type: "register_command", name: "note", description: "write something down for later" });
send({
  type: "register_tool",
  name: "read_notes",
  description: "Read the notes that the user has taken.",
  schema: { type: "object", properties: { containing: { type: "string", description: "only notes with this text" } } },
  replay: "safe",
});
send({ type: "ready" });

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => receive(JSON.parse(line)));
