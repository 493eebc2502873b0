// An editor that uses the published TypeScript SDK: `node client.mjs SDK CWD COMMAND ARG...`.
//
// Does what a person would, in one go, and prints what came of it as JSON: every frame as [sender, message], and facts.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [sdk, cwd, command, ...args] = process.argv.slice(2);
const acp = await import(`${sdk}/dist/v1/stable/acp.js`);
const { agent: methods, client: ours } = acp.methods;

const program = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const pipes = acp.ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
const frames = [];
const updates = [];
const facts = {};
let wake = () => {};

// Frames are kept as they are on the wire, before the SDK looks at them.
const keep = (sender) =>
  new TransformStream({
    transform(message, controller) {
      frames.push([sender, message]);
      controller.enqueue(message);
    },
  });
const outgoing = keep("client");
outgoing.readable.pipeTo(pipes.writable).catch(() => {});
const stream = { writable: outgoing.writable, readable: pipes.readable.pipeThrough(keep("agent")) };

let answer = "reject_once";
const editor = acp
  .client({ name: "test" })
  .onRequest(ours.session.requestPermission, async ({ params, signal }) => {
    wake();
    if (answer === "cancelled") {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return { outcome: { outcome: "cancelled" } };
    }
    const option = params.options.find((one) => one.kind === answer);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onNotification(ours.session.update, ({ params }) => {
    updates.push(params.update);
    wake();
  });

const seen = (kind) => updates.filter((one) => one.sessionUpdate === kind);
const words = (kind) => seen(kind).map((one) => one.content.text).join("");
const until = async (fact) => {
  while (!fact()) await new Promise((resolve) => (wake = resolve));
};

await editor.connectWith(stream, async (agent) => {
  facts.introduced = await agent.request(methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "typescript", version: "1" },
    clientCapabilities: { session: { notices: {} } },
  });
  const { sessionId, modes } = await agent.request(methods.session.new, { cwd, mcpServers: [] });
  facts.modes = modes.availableModes.map((one) => one.id);
  const say = (text) => agent.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

  facts.first = [(await say("hi")).stopReason, words("agent_message_chunk")];
  await agent.request(methods.session.setMode, { sessionId, modeId: "ask" });
  facts.rejected = [(await say("write it")).stopReason, seen("tool_call_update").at(-1).status];
  answer = "allow_once";
  facts.allowed = [(await say("write it")).stopReason, seen("tool_call_update").at(-1).status];

  const before = words("agent_message_chunk");
  const cancelled = say("never end");
  await until(() => words("agent_message_chunk") !== before);
  await agent.notify(methods.session.cancel, { sessionId });
  facts.cancelled = (await cancelled).stopReason;

  const set = { sessionId, configId: "reasoning", value: "high" };
  facts.options = (await agent.request(methods.session.setConfigOption, set)).configOptions.map((one) => one.currentValue);
  facts.command = [(await say("/nothing")).stopReason, words("agent_message_chunk").includes("there is no /nothing")];
  facts.listed = (await agent.request(methods.session.list, { cwd })).sessions.map((one) => one.title);

  updates.length = 0;
  await agent.request(methods.session.load, { sessionId, cwd, mcpServers: [] });
  facts.loaded = updates.map((one) => one.sessionUpdate).filter((kind) => !kind.startsWith("available"));
  await agent.request(methods.session.resume, { sessionId, cwd, mcpServers: [{ name: "x", type: "http", url: "", headers: [] }] });
  facts.usage = seen("usage_update").length > 0;
  await until(() => seen("available_commands_update").length > 0 && seen("notice").length > 0);
  facts.notice = seen("notice").at(-1).severity;
  facts.closed = await agent.request(methods.session.close, { sessionId });
  facts.deleted = await agent.request(methods.session.delete, { sessionId });
  facts.left = (await agent.request(methods.session.list, { cwd })).sessions.length;
  facts.unknown = await agent.request("session/teleport", {}).then(
    () => 0,
    (error) => error.code,
  );
});
program.stdin.end();
facts.exit = await new Promise((resolve) => (program.exitCode === null ? program.on("exit", resolve) : resolve(program.exitCode)));
process.stdout.write(JSON.stringify({ frames, facts }));
