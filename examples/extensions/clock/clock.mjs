// An extension in plain Node: a command, a tool and a status segment.

import { createInterface } from "node:readline";

const send = (frame) => process.stdout.write(JSON.stringify(frame) + "\n");

function timeIn(zone) {
  return new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", dateStyle: "full", timeZone: zone }).format(new Date());
}

const receive = {
  command_invoked({ id, args }) {
    try {
      send({ type: "command_response", id, action: "display", display: timeIn(args || undefined) });
    } catch (error) {
      send({ type: "command_response", id, action: "noop", error: error.message });
    }
  },
  tool_call({ id, args }) {
    try {
      send({ type: "tool_result", id, content: [{ type: "text", text: timeIn(args.zone) }] });
    } catch (error) {
      send({ type: "tool_result", id, content: [{ type: "text", text: error.message }], is_error: true });
    }
  },
  event({ event }) {
    if (event === "turn_end") send({ type: "set_status", key: "clock", text: new Date().toTimeString().slice(0, 5) });
  },
  shutdown() {
    send({ type: "shutdown_ack" });
    frames.close();
    process.stdin.destroy();
  },
};

send({ type: "hello", name: "clock", version: "1.0.0", capabilities: ["commands", "tools", "events"] });
send({ type: "register_command", name: "clock", description: "show the time, here or in a time zone" });
send({
  type: "register_tool",
  name: "time_in",
  description: "The current date and time in a time zone.",
  schema: {
    type: "object",
    properties: { zone: { type: "string", description: "IANA name, such as Europe/Berlin" } },
    required: ["zone"],
  },
  replay: "safe",
});
send({ type: "subscribe", events: ["turn_end"] });
send({ type: "ready" });

const frames = createInterface({ input: process.stdin });
frames.on("line", (line) => {
  const frame = JSON.parse(line);
  receive[frame.type]?.(frame); // frames of newer hosts are none of our business
});
