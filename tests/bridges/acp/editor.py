"""An editor for tests: the published Python SDK, and what a person in front of it would see and do."""

import asyncio
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    FileSystemCapabilities,
    KillTerminalResponse,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

WAIT_S = 30.0
"""Longest wait for anything; a loaded machine takes one second for what takes a millisecond."""

LINE_BYTES = 32 * 1024 * 1024


class Editor:
    """One `zot acp` process and the SDK's connection to it. `async with` starts and ends it."""

    def __init__(self, command, env, cwd, *, answer="reject_once", buffers=None, forms=None, meta=None, terminals=None):
        """`answer`: the option that the person chooses of each permission request; None: nothing, ever.

        `buffers`: files that are open, by path; None: the editor has no files for agents. `forms`: what the person fills in
        in each form; None: the editor cannot show forms. `meta`: what it says of itself beyond the protocol.
        `terminals`: a `Terminals`; None: the editor has none for agents.
        """
        self.meta = meta
        self.terminals = terminals
        self.forms = forms
        self.messages = []
        """Of forms."""
        self.answer = answer
        self.buffers = buffers
        self.saves = True
        """What is written to a buffer is saved."""
        self.frames = []
        """Everything on the wire, as `(sender, message)`."""
        self.updates = []
        """Of all sessions, as `(session, update)`; updates as JSON."""
        self.asked = []
        """Permission requests, as JSON."""
        self._command = command
        self._env = env
        self._cwd = cwd
        self._news = asyncio.Condition()
        self._stack = AsyncExitStack()

    async def __aenter__(self):
        self.agent, self.process = await self._stack.enter_async_context(
            acp.spawn_agent_process(
                self,  # type: ignore[arg-type]  # its methods take what they need of the parameters
                *self._command,
                env=self._env,
                cwd=self._cwd,
                transport_kwargs={"limit": LINE_BYTES},
                observers=[self._observe],
                use_unstable_protocol=True,
            )
        )
        has = self.buffers is not None
        fs = FileSystemCapabilities(read_text_file=has, write_text_file=has)
        able = ClientCapabilities(fs=fs, terminal=self.terminals is not None, field_meta=self.meta)
        if self.forms is not None:
            able.elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities())
        self.introduced = await self.agent.initialize(acp.PROTOCOL_VERSION, able)
        return self

    async def __aexit__(self, *exception):
        # Of one that was killed, answers may have been under way to it.
        with suppress(*[ConnectionResetError] if self.process.returncode is not None else []):
            await self._stack.__aexit__(*exception)

    # --- what a person does -----------------------------------------------------------------------------------------

    async def open(self, cwd, *servers):
        """A new session with these MCP servers; its id."""
        return (await self.agent.new_session(str(cwd), mcp_servers=[*servers])).session_id

    async def say(self, session, *words):
        """A prompt of texts and other blocks; its stop reason."""
        blocks = [acp.text_block(one) if isinstance(one, str) else one for one in words]
        async with asyncio.timeout(WAIT_S):
            return (await self.agent.prompt(session_id=session, prompt=blocks)).stop_reason

    async def delete(self, session):
        """Delete a session; this SDK has no method for it."""
        return await self.agent._conn.send_request("session/delete", {"sessionId": session})

    async def refused(self, request):
        """The code and the sentence with which a request is refused."""
        try:
            answer = await request
        except acp.RequestError as error:
            return error.code, str(error)
        raise AssertionError(f"it was not refused: {answer}")

    # --- what a person sees -----------------------------------------------------------------------------------------

    def seen(self, kind, session=None):
        """Updates of this kind."""
        return [update for of, update in self.updates if update["sessionUpdate"] == kind and session in {None, of}]

    def read(self, kind="agent_message_chunk", session=None):
        """The text of all chunks of this kind."""
        return "".join(update["content"]["text"] for update in self.seen(kind, session))

    async def until(self, fact):
        """Wait until `fact()` is true; it is looked at after each frame."""
        async with asyncio.timeout(WAIT_S), self._news:
            await self._news.wait_for(fact)

    def shown(self):
        """The text in the terminal that the agent fills for the first call, and how its command has ended."""
        call = next((update["toolCallId"] for update in self.seen("tool_call")), None)
        metas = [update.get("_meta", {}) for _, update in self.updates if update.get("toolCallId") == call]
        outputs = [meta["terminal_output"] for meta in metas if "terminal_output" in meta]
        ends = [meta["terminal_exit"] for meta in metas if "terminal_exit" in meta]
        assert {one["terminal_id"] for one in [*outputs, *ends]} <= {call}
        return "".join(one["data"] for one in outputs), [(one["exit_code"], one["signal"]) for one in ends]

    # --- what the SDK calls -----------------------------------------------------------------------------------------

    def on_connect(self, agent):
        pass

    async def session_update(self, **_):
        pass

    async def request_permission(self, **_):
        if self.answer is None:
            await asyncio.Event().wait()
        if self.answer == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.answer))

    async def create_elicitation(self, *, message, **_):
        self.messages.append(message)
        return AcceptElicitationResponse(action="accept", content=self.forms)

    async def read_text_file(self, *, path, **_):
        if path not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        if self.buffers[path] is None:
            await asyncio.Event().wait()
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, *, path, content, **_):
        self.buffers[path] = content
        if self.saves:
            await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()

    async def create_terminal(self, *, command, args, cwd, output_byte_limit, **_):
        name = await self.terminals.create(command, args, cwd, output_byte_limit)
        return CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, *, terminal_id, **_):
        code, signal = await self.terminals.ended(terminal_id)
        return WaitForTerminalExitResponse(exit_code=code, signal=signal)

    async def terminal_output(self, *, terminal_id, **_):
        output, truncated = self.terminals.output(terminal_id)
        return TerminalOutputResponse(output=output, truncated=truncated)

    async def kill_terminal(self, *, terminal_id, **_):
        self.terminals.kill(terminal_id)
        return KillTerminalResponse()

    async def release_terminal(self, *, terminal_id, **_):
        self.terminals.release(terminal_id)
        return ReleaseTerminalResponse()

    async def _observe(self, event):
        message = event.message
        self.frames.append(("agent" if event.direction == "incoming" else "client", message))
        if message.get("method") == "session/update":
            self.updates.append((message["params"]["sessionId"], message["params"]["update"]))
        if message.get("method") == "session/request_permission":
            self.asked.append(message["params"])
        async with self._news:
            self._news.notify_all()
