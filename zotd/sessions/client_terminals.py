"""Asks the client that is an editor to run a command in a terminal. Satisfies `core.editor_terminals.EditorTerminals`.

    bash ──> terminal_request ──> the client that has offered its terminals last ──> terminals.answer ──> bash

A client that leaves has no terminals any more. Whether a command has begun is not asked here: it says so itself
(`zotd.process.start_gate`), so that an editor which does not answer is not mistaken for one that has run nothing.
"""

import asyncio
from collections.abc import Callable, Sequence

from zotd import ids
from zotd.config import Config
from zotd.core.editor_terminals import TerminalEnd
from zotd.core.ports import SessionRow
from zotd.sessions.machine import Machine
from zotd.wire import events
from zotd.wire.api import TerminalAnswer
from zotd.wire.errors import Code, CommandError

GONE = TerminalEnd(error="has gone")

Send = Callable[[events.TerminalRequest], None]


class ClientTerminal:
    """A terminal that a client was asked for. Satisfies `core.editor_terminals.EditorTerminal`."""

    def __init__(
        self, client: str, request: events.TerminalRequest, send: Send, lost: Callable[[str, str], None]
    ) -> None:
        """Send the request. `lost` is told the client, and why it is asked no more."""
        self.client = client
        self.end: asyncio.Future[TerminalEnd] = asyncio.get_running_loop().create_future()
        self._request = request
        self._send = send
        self._lost = lost
        send(request)

    async def ended(self) -> TerminalEnd:
        """See `core.editor_terminals.EditorTerminal`."""
        return await asyncio.shield(self.end)

    def watch(self, then: Callable[[], None]) -> None:
        """See `core.editor_terminals.EditorTerminal`."""
        self.end.add_done_callback(lambda _: then())

    def kill(self) -> None:
        """See `core.editor_terminals.EditorTerminal`."""
        if not self.end.done():
            self._send(
                events.TerminalRequest(self._request.id, "kill", self._request.call, session=self._request.session)
            )

    def give_up(self, why: str) -> None:
        """See `core.editor_terminals.EditorTerminal`."""
        self._lost(self.client, why)


class ClientTerminals:
    """The editors of one session that have terminals."""

    def __init__(self, label: str | None, warn: Callable[[str], None]) -> None:
        """`label`: the session in events. `warn` tells the people of the session a sentence."""
        self._label = label
        self._warn = warn
        self.offers: dict[str, Send] = {}
        """By client, the newest last; empty: there is no editor. Read by others, changed here only."""
        self.sockets = ""
        """See `core.editor_terminals.EditorTerminals`; known once they were `usable`."""
        self._open: dict[str, ClientTerminal] = {}

    def usable(self, row: SessionRow, config: Config, machine: Machine) -> "ClientTerminals | None":
        """Return the terminals if commands may run there now: nothing confines them, so only in `yolo`, and if a person wants it."""
        if not self.offers or not config.editor.terminals or row.settings.mode != "yolo":
            return None
        self.sockets = machine.places.get("ZOTD_OUTLETS", "")
        return self

    def offer(self, client: str, send: Send) -> None:
        """Ask this client from now on. `withdraw` has to be called when it is gone."""
        self.offers.pop(client, None)
        self.offers[client] = send

    def withdraw(self, client: str) -> None:
        """Ask this client no more; what becomes of commands in its terminals is unknown."""
        self.offers.pop(client, None)
        for terminal in self._open.values():
            if terminal.client == client and not terminal.end.done():
                terminal.end.set_result(GONE)

    def answer(self, client: str, given: TerminalAnswer) -> None:
        """Take an answer. Raises CommandError if the client was not asked, or is too late."""
        terminal = self._open.get(given.request)
        if terminal is None or terminal.client != client or terminal.end.done():
            raise CommandError(Code.NOT_FOUND, f"there is no open request {given.request[:80]} for this client")
        error = "" if given.error is None else f"says: {given.error}"
        terminal.end.set_result(TerminalEnd(given.output, given.truncated, given.exit_code, error))

    def open(self, call: str, argv: Sequence[str], *, cwd: str, output_bytes: int) -> ClientTerminal:
        """See `core.editor_terminals.EditorTerminals`. `offers` must not be empty."""
        client, send = next(reversed(self.offers.items()))
        request = events.TerminalRequest(
            ids.new("t"),
            "run",
            call,
            command=argv[0],
            args=[*argv[1:]],
            cwd=cwd,
            output_bytes=output_bytes,
            session=self._label,
        )
        terminal = self._open[request.id] = ClientTerminal(client, request, send, self._lost)
        terminal.end.add_done_callback(lambda _: self._open.pop(request.id, None))
        return terminal

    def _lost(self, client: str, why: str) -> None:
        if self.offers.pop(client, None) is not None:
            self._warn(f"the editor {why}; commands run outside of its terminals until it opens the session again")
