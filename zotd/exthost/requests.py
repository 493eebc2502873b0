"""Requests of an extension to run a tool (`call_tool`), each of which gets exactly one answer.

    call_tool ──> Requests.open ──> ToolRequest ──> the tool runner ──> ToolRequest.answer ──> tool_result
                                        └── given_up: call_tool_cancel, or the end of its parent call

This module finds the session and the parent call of a request; `sessions.nested_calls` decides whether the tool may run.
A request belongs to a call of the host, or else to the process. When that has ended, the request is given up.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct, field

from zotd.core.depth import TOO_DEEP, is_too_deep
from zotd.core.ports import Ancestor, ToolOutcome
from zotd.exthost.calls import Calls, PendingCall
from zotd.exthost.content import blocks_of
from zotd.wire import ext

MAX_OPEN = 32
"""Limit of open requests of one process. A model's step rarely has ten calls, and each may be a child process."""

REMEMBERED = 256
"""Number of remembered ids of closed requests: a frame that is sent twice must not run a tool twice."""

ID_CHARS = 200
"""Longest id and name: both are part of the answer, which has to stay below 4 MiB."""


class ToolRequest(Struct, eq=False):
    """A request to run a tool. Its receiver has to answer it; a late answer is dropped."""

    extension: str
    name: str
    args: dict[str, object]
    session: str
    answer: Callable[[ToolOutcome], None]
    """Sends the result; only the first one counts."""
    progress: Callable[[str], None]
    """Shows text as progress of the parent call."""
    lineage: tuple[Ancestor, ...] = ()
    """The tool calls that led to it, outermost first."""
    given_up: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done when the tool should be ended. The request still has to be answered."""

    def give_up(self) -> None:
        """Ask for the end of the tool; does nothing if that was done before."""
        if not self.given_up.done():
            self.given_up.set_result(None)


class Requests:
    """The open requests of one process."""

    def __init__(self, calls: Calls, send: Callable[[ext.ToolAnswer], None]) -> None:
        """`calls` are those that the process has to answer, `send` sends its answers."""
        self._calls = calls
        self._send = send
        self._open: dict[str, ToolRequest] = {}
        self._ids: dict[str, None] = {}
        self._is_closed = False

    def open(self, extension: str, frame: ext.CallTool, last_session: str | None, *, may: bool) -> ToolRequest | None:
        """Open a request; return None if the frame is a repetition or was answered with an error.

        Args:
            extension: name of the extension.
            frame: the `call_tool` frame.
            last_session: session of a frame that names neither a session nor a parent.
            may: whether the extension announced the capability.
        """
        if self._is_closed or frame.id in self._ids or not 0 < len(frame.id) <= ID_CHARS:
            return None
        self._remember(frame.id)
        try:
            self._check(frame, may=may)
            session, parent = self._subject(frame, last_session)
        except _RefusedError as error:
            self._answer(frame, ToolOutcome.error(str(error)))
            return None
        request = ToolRequest(
            extension=extension,
            name=frame.name,
            args=frame.args,
            session=session,
            answer=partial(self._close, frame, session, parent.cwd if parent else None),
            progress=parent.progress if parent and parent.progress else _unseen,
            lineage=parent.lineage if parent else (),
        )
        if parent is not None:
            # A tool must not outlive the call that it was requested for.
            parent.answer.add_done_callback(lambda _: request.give_up())
        self._open[frame.id] = request
        return request

    def cancel(self, key: str) -> None:
        """Give up a request that the process has cancelled."""
        if key in self._open:
            self._open[key].give_up()

    def close(self) -> None:
        """Give up all requests without an answer and accept no more, because the process ends."""
        self._is_closed = True
        requests, self._open = self._open, {}
        for request in requests.values():
            request.give_up()

    # --- details ----------------------------------------------------------------------------------------------

    def _check(self, frame: ext.CallTool, *, may: bool) -> None:
        if not may:
            raise _RefusedError(f"announce the capability {ext.CALL_TOOL} in hello to call tools")
        if len(self._open) >= MAX_OPEN:
            raise _RefusedError(f"{MAX_OPEN} tool calls are open already; wait for the answer to one of them")
        if is_too_deep(frame.args):
            raise _RefusedError(f"a tool cannot be called with {TOO_DEEP}")

    def _subject(self, frame: ext.CallTool, last_session: str | None) -> tuple[str, PendingCall | None]:
        """Return the session of a request and its parent call."""
        if frame.parent_id:
            parent = self._calls.find(frame.parent_id)
            # A question to a guard cannot be a parent: the tool's own guards would ask the same extension again.
            if parent is None or parent.session is None or parent.kind is ext.EventInterceptResponse:
                raise _RefusedError("parent_id is not an open tool call or command")
            return parent.session, parent
        session = frame.session_id or last_session
        if session is None:
            raise _RefusedError("it names no session; set parent_id or session_id")
        if self._calls.is_asked(session):
            # Without a parent the chain is unknown, and a tool or a guard could call itself for ever.
            raise _RefusedError("the extension is handling a call or an event of this session; set parent_id to it")
        return session, None

    def _remember(self, key: str) -> None:
        self._ids[key] = None
        if len(self._ids) > REMEMBERED + MAX_OPEN:
            # Only ids of closed requests are forgotten; an open one could otherwise be opened twice.
            closed = next(key for key in self._ids if key not in self._open)
            del self._ids[closed]

    def _close(self, frame: ext.CallTool, session: str, cwd: str | None, outcome: ToolOutcome) -> None:
        if self._open.pop(frame.id, None) is not None:
            self._answer(frame, outcome, session, cwd)

    def _answer(
        self, frame: ext.CallTool, outcome: ToolOutcome, session: str | None = None, cwd: str | None = None
    ) -> None:
        blocks, is_cut = blocks_of(outcome.content)
        self._send(ext.ToolAnswer(frame.id, frame.name[:ID_CHARS], blocks, outcome.is_error, is_cut, session, cwd))


class _RefusedError(Exception):
    """The request is refused; the message is the answer."""


def _unseen(_: str) -> None:
    """Drop progress: without a parent call there is no place to show it."""
