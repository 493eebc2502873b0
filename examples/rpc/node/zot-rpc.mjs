#!/usr/bin/env node
// Drives `zot rpc` with nothing but Node (18 or newer): one prompt in, what happens out.
//
//     zot-rpc.mjs [zot rpc flags...] -- PROMPT...
//
// Text and tool calls go to stdout as they come. Exit code: 0 when the run ended normally, 1 when it failed, 2 for
// wrong usage. ZOTCORE_RPC_TOKEN, when set, is sent with `hello`.
import { spawn } from "node:child_process";
import { once } from "node:events";

async function main(args) {
  const end = args.indexOf("--");
  if (end < 0 || end === args.length - 1) {
    process.stderr.write("usage: zot-rpc.mjs [zot rpc flags...] -- PROMPT...\n");
    return 2;
  }
  const zot = spawn("zot", ["rpc", ...args.slice(0, end)], { stdio: ["pipe", "pipe", "inherit"] });
  zot.stdin.on("error", () => {}); // it has ended; the end of its output says so
  const send = (frame) => zot.stdin.write(JSON.stringify(frame) + "\n");

  try {
    await once(zot, "spawn"); // throws when there is no such program
    const exited = once(zot, "exit");
    send({ id: "0", type: "hello", token: process.env.ZOTCORE_RPC_TOKEN || undefined });
    send({ id: "1", type: "prompt", message: args.slice(end + 1).join(" ") });
    await showRun(frames(zot.stdout));
    zot.stdin.end(); // it finishes and exits
    const [code] = await exited;
    return code === 0 ? 0 : 1;
  } catch (error) {
    zot.stdin.end();
    process.stderr.write(`error: ${error.message}\n`);
    return 1;
  }
}

// Shows frames until `done`. Throws when the last turn did not stop with `end_turn` (some versions say `end`), when a
// command was refused, and when the process ended too early.
async function showRun(frames) {
  let stop, error;
  for await (const frame of frames) {
    if (frame.type === "turn_end") ({ stop, error } = frame);
    else if (frame.type === "error") error = frame.message;
    else if (frame.type === "response" && !frame.success) throw new Error(frame.error);
    else if (frame.type !== "done") process.stdout.write(shown(frame));
    else if (stop === "end_turn" || stop === "end") return;
    else throw new Error(error ?? `the run stopped: ${stop}`);
  }
  throw new Error("zot rpc ended before the run did");
}

// What one event has to say; events that this program does not know say nothing.
function shown(frame) {
  switch (frame.type) {
    case "text_delta":
      return frame.delta;
    case "assistant_message":
      return frame.content.some((block) => block.type === "text") ? "\n" : "";
    case "tool_call":
      return `[call] ${frame.name} ${JSON.stringify(frame.args)}\n`;
    case "tool_result": {
      const text = frame.content.map((block) => block.text ?? `[${block.mime_type}]`).join("\n");
      return `[${frame.is_error ? "error" : "result"}] ${text.split("\n")[0]}\n`;
    }
    default:
      return "";
  }
}

// One frame per LF. Not node:readline, which also ends lines at U+2028, legal inside a JSON string.
async function* frames(stream) {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

process.exitCode = await main(process.argv.slice(2));
