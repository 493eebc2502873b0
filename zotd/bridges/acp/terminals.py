"""Runs commands of the daemon in terminals of the editor, and shows these with their tool calls.

    terminal_request ──> terminal/create ──> wait_for_exit ──> output ──> release ──> terminals.answer
                                    kill ──> terminal/kill

Every terminal is released. What runs when the connection to the daemon is lost is ended: the daemon does not wait for it.
"""

import logging
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from zotd.bridges.acp.editor import Editor, Spawn
from zotd.bridges.acp.updates import Updates
from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.wire import api
from zotd.wire.acp import (
    CreatedTerminal,
    CreateTerminal,
    Empty,
    OfTerminal,
    TerminalContent,
    TerminalStatus,
    TerminalText,
    ToolCallUpdate,
)
from zotd.wire.base import BadFrameError
from zotd.wire.events import TerminalRequest

log = logging.getLogger(__name__)


class TerminalRequests:
    """The terminals of one editor, for one session."""

    def __init__(
        self,
        session: str,
        editor: Editor,
        spawn: Spawn,
        *,
        offered: bool,
        show: Callable[[ToolCallUpdate], Awaitable[None]],
        updates: Updates,
    ) -> None:
        """`offered`: the editor has terminals. `show` sends it an update; `updates` has to know what was sent."""
        self._session = session
        self._editor = editor
        self._spawn = spawn
        self._offered = offered
        self._show = show
        self._updates = updates
        self._open: dict[str, str | None] = {}
        """The terminals of requests that are not answered; None: the editor has made none yet."""
        self._unwanted: set[str] = set()
        """Requests without a terminal that need none any more."""

    async def offer(self, client: Client) -> None:
        """Have the daemon use the terminals as long as the connection of `client` lasts."""
        if self._offered:
            try:
                await client.ask(api.TerminalsOffer(session=self._session), api.Nothing)
            except ClientError as error:  # an older daemon, or a lost connection: then commands run in the daemon
                log.warning("commands do not run in terminals of the editor: %s", error)

    async def serve(self, request: TerminalRequest, client: Client) -> None:
        """Run the command, and answer with what became of it."""
        try:
            answer = await self._run(request)
        except BadFrameError as error:
            answer = api.TerminalAnswer(session=self._session, request=request.id, error=str(error))
        finally:
            self._open.pop(request.id, None)
            self._unwanted.discard(request.id)
        try:
            await client.ask(answer, api.Nothing)
        except ClientError as error:  # it was too late, or the connection is lost
            log.info("the end of a command in a terminal was not taken: %s", error)

    def kill(self, request: str) -> None:
        """End the command of a request; nothing happens if it has ended."""
        if request not in self._open:
            return
        terminal = self._open[request]
        if terminal is None:
            self._unwanted.add(request)
        else:
            self._spawn(f"kill {terminal}", self._kill(terminal))

    def kill_all(self) -> None:
        """End all commands: nobody waits for them any more."""
        for request in [*self._open]:
            self.kill(request)

    async def _run(self, request: TerminalRequest) -> api.TerminalAnswer:
        self._open[request.id] = None
        wanted = CreateTerminal(self._session, request.command, request.args, request.cwd, request.output_bytes)
        terminal = (await self._editor.ask("terminal/create", wanted, CreatedTerminal)).terminal_id
        of = OfTerminal(self._session, terminal)
        try:
            if request.id in self._unwanted:
                return api.TerminalAnswer(session=self._session, request=request.id, error="it came too late")
            self._open[request.id] = terminal
            shown = TerminalContent(terminal)
            self._updates.has_shown(request.call, shown)
            await self._show(ToolCallUpdate(tool_call_id=request.call, content=[shown]))
            status = await self._editor.ask("terminal/wait_for_exit", of, TerminalStatus)
            found = await self._editor.ask("terminal/output", of, TerminalText)
            return api.TerminalAnswer(
                session=self._session,
                request=request.id,
                output=found.output,
                truncated=found.truncated,
                exit_code=exit_code(status),
            )
        finally:
            with suppress(BadFrameError):  # it is gone
                await self._editor.ask("terminal/release", of, Empty)

    async def _kill(self, terminal: str) -> None:
        with suppress(BadFrameError):  # it has just ended
            await self._editor.ask("terminal/kill", OfTerminal(self._session, terminal), Empty)


def exit_code(status: TerminalStatus) -> int | None:
    """Return the exit code in the form of a shell, 128 + N after signal N; None if the editor does not say."""
    if status.exit_code is not None or status.signal is None:
        return status.exit_code
    name = status.signal.upper()
    if name.isdecimal():
        return 128 + int(name)
    with suppress(KeyError):
        return 128 + signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    return None
