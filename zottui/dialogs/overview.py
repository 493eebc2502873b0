"""The overview (F2): all sessions of the daemon with their state, last message and pending approvals.

A pending call can be approved here if its whole preview is on the screen.
"""

import time
from collections.abc import Callable

from zotd.wire import api, events
from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zotd.wire.events import AnyEvent, ApprovalRequested
from zottui.asking import Refreshing
from zottui.dialogs.frame import Keys, framed, headed
from zottui.dialogs.keys import letter
from zottui.dialogs.listing import Listing
from zottui.dialogs.sessions import SessionsDialog
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import clean, cut, cut_front, folded, piece

PEEK_ROWS = 5
"""Most rows for the selected session's preview; never more than half of the dialog."""

MOVES = frozenset({"up", "down", "pageup", "pagedown"})


class Overview:
    """A dialog with all sessions, the most urgent first; open it with `UiContext.open`."""

    has_editor = False

    def __init__(self, ui: UiContext, clock: Callable[[], float] = time.time) -> None:
        """Start loading the sessions. `clock` returns seconds since the epoch, for ages."""
        self._ui = ui
        self._sessions = SessionsDialog(ui, clock, cwd=None)
        self._listing = Listing()
        # Pending approvals by session, oldest first.
        self._questions: dict[str, list[ApprovalRequested]] = {}
        # Last line of the newest message by session, loaded when a session is selected.
        self._lines: dict[str, str] = {}
        # The approval on the screen, which `y` and `n` decide.
        self._question: ApprovalRequested | None = None
        # Whether its whole preview is on the screen: only then may `y` allow it.
        self._is_whole = False
        self._asking = Refreshing(ui, self._ask)
        self._peeking = Refreshing(ui, self._peek)
        self._sessions.want()
        self._asking.want()

    # --- drawing ----------------------------------------------------------------------------------------------------

    def see(self, event: AnyEvent) -> None:
        """Update the list from an event of the topic `sessions`."""
        if not self._sessions.see(event):
            return
        if isinstance(event, events.SessionUpdated):
            self._lines.pop(event.session or "", None)
            self._asking.want()
        self._ui.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the number of sessions that need the user, the list, the selected session's preview and key hints."""
        self._listing.replace(self._sessions.entries(by_urgency=True))
        selected = self._listing.selected
        if selected is not None and selected.key not in self._lines:
            self._peeking.want()
        peek = self._shown(selected.key, width, min(PEEK_ROWS, height // 2)) if selected is not None else []
        number = sum(map(bool, self._questions.values()))
        head = headed("all sessions", f"{number} need{'s' * (number == 1)} you" if number else "")
        return framed(
            head,
            lambda room: self._listing.rows(width, max(room - len(peek), 1)) + peek,
            self._keys(),
            width=width,
            height=height,
        )

    def _keys(self) -> Keys:
        decide = [("y", "once")] if self._is_whole else []
        deny = [("n", "no")] if self._question is not None else []
        return [*decide, *deny, ("enter", "open"), ("esc", "close")]

    def _shown(self, session: str, width: int, room: int) -> list[Row]:
        """Return the session's oldest pending approval, else its last line. Sets `_question` and `_is_whole`."""
        self._question = next(iter(self._questions.get(session, ())), None)
        self._is_whole = False
        if self._question is None:
            line = clean(self._lines.get(session, "")).strip()
            return [[piece(TextRole.QUOTE, cut(f"  {line}", width))]] if line and room > 0 else []
        preview = self._question.preview or _arguments(self._question)
        lines = [cut_front(line, width) for line in folded(f"{self._question.tool}: {preview}", width)]
        self._is_whole = len(lines) <= room
        shown = lines if self._is_whole else lines[: max(room - 1, 0)]
        rows = [[piece(TextRole.WARNING, line)] for line in shown]
        if not self._is_whole and room > 0:
            rows.append([piece(TextRole.MUTED, f"… {len(lines) - len(shown)} more lines: enter shows them")])
        return rows

    # --- keys -------------------------------------------------------------------------------------------------------

    def key(self, name: str, text: str) -> bool:
        """Open the selected session, decide its approval or move the selection; other letters are swallowed."""
        match letter(name, text):
            case "escape" | "f2":
                self._ui.close(self)
            case "enter":
                if (selected := self._listing.selected) is not None:
                    self._ui.close(self)
                    self._ui.spawn(self._ui.switch(selected.key))
            case "y" if self._question is not None and self._is_whole:
                self._decide(self._question, "allow")
            case "n" if self._question is not None:
                self._decide(self._question, "deny")
            case key if key in MOVES:
                self._listing.key(name, text)
                self._question = None  # a quick `y` must not decide about a call that is not drawn yet
                self._ui.redraw()
            case key:
                return len(key) == 1
        return True

    def _decide(self, question: ApprovalRequested, decision: str) -> None:
        self._question = None
        session = question.session or ""
        # Remove it at once, so that a second key press cannot decide the same call again.
        self._questions[session] = [one for one in self._questions.get(session, ()) if one is not question]
        params = api.Approve(
            session=session,
            approval=question.approval,
            args_digest=question.args_digest,
            decision=decision,
        )

        async def deciding() -> None:
            try:
                await self._ui.ask(params, api.Nothing)
            finally:
                self._asking.want()  # also after an error: another client may have decided

        self._ui.spawn(deciding())

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        pending = (await self._ui.ask(api.ApprovalScope(), api.Approvals)).approvals
        found: dict[str, list[ApprovalRequested]] = {}
        for one in pending:
            found.setdefault(one.session or "", []).append(one)
        self._questions = found

    async def _peek(self) -> None:
        selected = self._listing.selected
        if selected is None or selected.key in self._lines:
            return
        self._lines[selected.key] = ""  # before the request: a session that cannot be read is not asked about again
        page = await self._ui.ask(api.History(session=selected.key, limit=1), api.HistoryPage)
        self._lines[selected.key] = newest_line(page.messages)


def _arguments(question: ApprovalRequested) -> str:
    """Return the arguments of a call that has no preview, one on each line."""
    return "\n".join(f"{name}: {value}" for name, value in question.args.items())


def newest_line(messages: list[Message]) -> str:
    """Return the last non-blank line of the last message; empty if there is none."""
    lines = [line for message in messages[-1:] for block in message.content for line in _said(block).splitlines()]
    return next((line for line in reversed(lines) if line.strip()), "")


def _said(block: object) -> str:
    match block:
        case Text(text=words):
            return words
        case ToolCall(name=name):
            return f"calls {name}"
        case ToolResult(content=content):
            return "\n".join(one.text for one in content if isinstance(one, Text))
        case _:
            return ""
