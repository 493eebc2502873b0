"""An editor for tests: the published Python SDK, and what a person in front of it would see and do."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)

WAIT_S = 30.0
"""Longest wait for anything; a loaded machine takes one second for what takes a millisecond."""

LINE_BYTES = 32 * 1024 * 1024


class Editor:
    """One `zot acp` process and the SDK's connection to it. `async with` starts and ends it."""

    def __init__(self, command, env, cwd, *, answer="reject_once", buffers=None, forms=None):
        """`answer`: the option that the person chooses of each permission request; None: nothing, ever.

        `buffers`: files that are open, by path; None: the editor has no files for agents. `forms`: what the person fills in
        in each form; None: the editor cannot show forms.
        """
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
                self,  # type: ignore[arg-type]  # it offers no terminals, so it is not asked for them
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
        able = ClientCapabilities(fs=fs)
        if self.forms is not None:
            able.elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities())
        self.introduced = await self.agent.initialize(acp.PROTOCOL_VERSION, able)
        return self

    async def __aexit__(self, *exception):
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

    async def _observe(self, event):
        message = event.message
        self.frames.append(("agent" if event.direction == "incoming" else "client", message))
        if message.get("method") == "session/update":
            self.updates.append((message["params"]["sessionId"], message["params"]["update"]))
        if message.get("method") == "session/request_permission":
            self.asked.append(message["params"])
        async with self._news:
            self._news.notify_all()
