"""The prompt history: of the session with `up` and `down`, of all sessions by a search."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from zotd.client.errors import ClientError
from zotd.wire.api import PromptHistory
from zotd.wire.content import Message, Text
from zotd.wire.reports import PastPrompt, PromptPage
from zottui.asking import Newest
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.line import Line
from zottui.theme import TextRole
from zottui.transcript import is_prompt
from zottui.ui_context import CommandSender, DialogHost, Row, TaskSpawner
from zottui.widgets.cells import cells, clean, cut, cut_front, padded, piece

FOUND = 50
"""Most search results; a longer query narrows them down."""

CWD_CELLS = 24
"""Columns for a session's directory; its end is kept, since it tells directories apart."""

_KEYS = [("enter", "edit"), ("ctrl+r", "next"), ("esc", "back to the draft")]


def prompts_of(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the prompts in messages, oldest first, without the output of `!commands`."""
    said = (
        "\n".join(block.text for block in message.content if isinstance(block, Text))
        for message in messages
        if is_prompt(message)
    )
    return [words for words in said if words.strip()]


class Prompts:
    """The prompts of a session and the user's position in them.

    As in readline, changes to an earlier prompt and the draft are kept while the user moves, until one of them is sent.
    """

    def __init__(self) -> None:
        self._stored: list[str] = []
        self._own: list[str] = []
        # While the user moves through them: the prompts and after them the draft, each with its changes.
        self._pages: list[str] = []
        self._at = 0

    def load(self, stored: Sequence[str]) -> None:
        """Set the daemon's prompts, oldest first; keeps this client's own that the daemon does not have yet."""
        self._stored = list(stored)
        # Prompts of this client that are still on their way would vanish from the history after a reconnect.
        self._own = [words for words in self._own if words not in self._stored]

    def add(self, words: str) -> None:
        """Add a submitted prompt, unless it equals the last one."""
        if [*self._stored, *self._own][-1:] != [words]:
            self._own.append(words)

    def forget(self) -> None:
        """Clear the history, for another session."""
        self._stored, self._own = [], []
        self.leave()

    def leave(self) -> None:
        """Reset the position: the next `older` begins at the end."""
        self._pages = []

    def older(self, current: str) -> str | None:
        """Return the previous prompt and keep `current` as the changed text of this one; None at the beginning."""
        if not self._pages:
            self._pages = [*self._stored, *self._own, current]
            self._at = len(self._pages) - 1
        return self._turn(current, -1)

    def newer(self, current: str) -> str | None:
        """Return the next prompt, at the end the draft; None if the draft is shown."""
        return self._turn(current, 1) if self._pages else None

    def _turn(self, current: str, by: int) -> str | None:
        if not 0 <= self._at + by < len(self._pages):
            return None
        self._pages[self._at] = current
        self._at += by
        return self._pages[self._at]


class HistoryContext(CommandSender, DialogHost, TaskSpawner, Protocol):
    """What `HistorySearch` needs of the application."""


class HistorySearch:
    """A dialog that searches the prompts of all sessions. The editor keeps its text until one is chosen."""

    has_editor = False

    def __init__(self, ui: HistoryContext, take: Callable[[str], None]) -> None:
        """Begin with the newest prompts; `take` gets the chosen one."""
        self._ui = ui
        self._take = take
        self._query = Line()
        self._found: Sequence[PastPrompt] = ()
        self._problem = ""
        self._at = 0
        self._asking = Newest(ui.spawn, self._ask, self._answered)
        self._asking.want("")

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the query and the results, newest first, with their directories and times."""
        head = headed("earlier prompts", self._problem)
        return framed(head, lambda room: self._body(width, room), _KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Handle a key; unknown keys are swallowed."""
        match named(name):
            case "enter":
                self._choose()
            case "escape" | "c-c" | "c-g":
                self._ui.close(self)
            case "c-r" | "down" | "c-n":
                self._move(1)
            case "c-s" | "up" | "c-p":
                self._move(-1)
            case _ if self._query.key(name, text):
                self._asking.want(self._query.text)
            case _:
                pass
        self._ui.redraw()
        return True

    def _body(self, width: int, height: int) -> list[Row]:
        if height <= 0:
            return []
        room = height - 1
        top = max(0, min(self._at - room // 2, len(self._found) - room))
        window = self._found[top : top + room]
        rows = [_row(prompt, width, is_selected=top + n == self._at) for n, prompt in enumerate(window)]
        return [self._query.row("search: ", width), *rows]

    def _move(self, by: int) -> None:
        if self._found:
            self._at = (self._at + by) % len(self._found)

    def _choose(self) -> None:
        self._ui.close(self)
        if self._found:
            self._take(self._found[self._at].text)

    async def _ask(self, query: str) -> tuple[Sequence[PastPrompt], str]:
        try:
            page = await self._ui.ask(PromptHistory(query=query, limit=FOUND), PromptPage)
        except ClientError as error:
            return (), str(error)
        return page.prompts, "" if page.prompts else "no matches"

    def _answered(self, _: str, answer: tuple[Sequence[PastPrompt], str]) -> None:
        self._found, self._problem = answer
        self._at = 0
        self._ui.redraw()


def _row(prompt: PastPrompt, width: int, *, is_selected: bool) -> Row:
    """Return a row with a prompt and, if there is room, its directory and time."""
    where = f"  {cut_front(clean(prompt.cwd), CWD_CELLS)}  {_local(prompt.time)}"
    room = width - cells(where)
    role = TextRole.SELECTED if is_selected else TextRole.TEXT
    if room < CWD_CELLS:
        return [piece(role, cut(clean(prompt.text), width))]
    return [piece(role, padded(clean(prompt.text), room)), piece(TextRole.MUTED, where)]


def _local(moment: str) -> str:
    """Convert an RFC 3339 time to local time, to the minute."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
