"""Tools that an extension wants the host to run (`call_tool`), and the one answer to each.

    call_tool ──> Requests.open ──> ToolRequest ──> whoever runs tools ──> ToolRequest.answer ──> tool_result
                                        └── given_up: call_tool_cancel, or the end of what it was made for

Here it is found out what a request is about; whether the tool may run is judged in `sessions.nested`. What it was made
for is a call of the host's, or else the process: when that has ended, nobody waits for the answer any more.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from zotd.core.depth import TOO_DEEP, is_too_deep
from zotd.core.ports import Ancestor, ToolOutcome
from zotd.exthost.calls import Calls, PendingCall
from zotd.exthost.content import blocks_of
from zotd.wire import ext

MAX_OPEN = 32
"""Of one process: a step of a model has rarely ten calls, and each one may be a child process."""

REMEMBERED = 256
"""Ids of closed requests, so that a frame that is sent twice does not run a tool twice; as in `core.correlation`."""

ID_CHARS = 200
"""Longest id and name: both come back in the answer, which has to stay below 4 MiB."""


@dataclass(slots=True, eq=False)
class ToolRequest:
    """A tool that an extension wants run. Whoever gets it has to answer it; what is answered late is dropped."""

    extension: str
    name: str
    args: dict[str, object]
    session: str
    answer: Callable[[ToolOutcome], None]
    """Sends the result; only the first one counts."""
    progress: Callable[[str], None]
    """Shows text as progress of the call that it was made for."""
    lineage: tuple[Ancestor, ...] = ()
    """The tool calls that led to it, outermost first."""
    given_up: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done when nobody wants the tool to go on; it is to be answered all the same."""

    def give_up(self) -> None:
        """Have it ended; harmless when it has."""
        if not self.given_up.done():
            self.given_up.set_result(None)


class Requests:
    """What one process has asked for and not been answered yet."""

    def __init__(self, calls: Calls, send: Callable[[ext.ToolAnswer], None]) -> None:
        """`calls`: those that the process has to answer itself."""
        self._calls = calls
        self._send = send
        self._open: dict[str, ToolRequest] = {}
        self._ids: dict[str, None] = {}
        self._is_closed = False

    def open(self, extension: str, frame: ext.CallTool, last_session: str | None, *, may: bool) -> ToolRequest | None:
        """The request that the frame is, or None: it came before, or was answered with an error.

        `last_session`: what a frame is about that does not say so. `may`: the extension has the capability.
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
            parent.answer.add_done_callback(lambda _: request.give_up())
        self._open[frame.id] = request
        return request

    def cancel(self, key: str) -> None:
        """The process does not want this one to go on."""
        if key in self._open:
            self._open[key].give_up()

    def close(self) -> None:
        """The process is gone, or is to go: end all, answer none, and take no more."""
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
        """The session that a request is about, and the call that it is made for."""
        if frame.parent_id:
            parent = self._calls.find(frame.parent_id)
            if parent is None or parent.session is None or parent.kind is ext.EventInterceptResponse:
                raise _RefusedError("parent_id is not an open tool call or command")
            return parent.session, parent
        session = frame.session_id or last_session
        if session is None:
            raise _RefusedError("it names no session; set parent_id or session_id")
        if self._calls.is_asked(session):
            # Without it the chain could not be followed, and a tool or a guard could lead to itself for ever.
            raise _RefusedError("the extension is handling a call or an event of this session; set parent_id to it")
        return session, None

    def _remember(self, key: str) -> None:
        self._ids[key] = None
        if len(self._ids) > REMEMBERED + MAX_OPEN:
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
    """A request that is answered at once; the message is the answer."""


def _unseen(_: str) -> None:
    """Progress of what no call of a tool was made for has nowhere to be shown."""
