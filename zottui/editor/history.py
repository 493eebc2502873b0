"""Earlier prompts: those of the session with `up` and `down`, those of all sessions by a search."""

from collections.abc import Callable, Sequence
from datetime import datetime

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
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import cells, clean, cut, cut_front, padded, piece

FOUND = 50
"""Prompts that are asked for; who has not found it among so many types another letter."""

CWD_CELLS = 24
"""Columns for the directory of a session; its end is what tells it apart."""

_KEYS = [("enter", "edit"), ("ctrl+r", "next"), ("esc", "back to the draft")]


def prompts_of(messages: Sequence[Message]) -> list[str]:
    """What people have said to the model in these messages, oldest first; not what their own commands have printed."""
    said = (
        "\n".join(block.text for block in message.content if isinstance(block, Text))
        for message in messages
        if is_prompt(message)
    )
    return [words for words in said if words.strip()]


class Prompts:
    """The prompts of a session, and where in them the user is.

    As in readline: what was changed in an earlier prompt is still there on the way back, and so is the draft, until one of
    them is sent.
    """

    def __init__(self) -> None:
        """No prompts yet."""
        self._stored: list[str] = []
        self._own: list[str] = []
        self._pages: list[str] = []
        """While the user goes through them: the prompts and behind them the draft, each as it was left."""
        self._at = 0

    def load(self, stored: Sequence[str]) -> None:
        """The prompts that the daemon has, oldest first; of this client's own only those remain that it does not have."""
        self._stored = list(stored)
        self._own = [words for words in self._own if words not in self._stored]

    def add(self, words: str) -> None:
        """One more."""
        if [*self._stored, *self._own][-1:] != [words]:
            self._own.append(words)

    def forget(self) -> None:
        """It is another session now."""
        self._stored, self._own = [], []
        self.leave()

    def leave(self) -> None:
        """Stop going through them: the next `older` begins at the end."""
        self._pages = []

    def older(self, current: str) -> str | None:
        """The prompt before the one that is shown, of which `current` is what became; None: there is none."""
        if not self._pages:
            self._pages = [*self._stored, *self._own, current]
            self._at = len(self._pages) - 1
        return self._turn(current, -1)

    def newer(self, current: str) -> str | None:
        """The one behind it, at the end the draft; None: that is shown."""
        return self._turn(current, 1) if self._pages else None

    def _turn(self, current: str, by: int) -> str | None:
        if not 0 <= self._at + by < len(self._pages):
            return None
        self._pages[self._at] = current
        self._at += by
        return self._pages[self._at]


class HistorySearch:
    """Asks for a prompt of any session; a `Dialog`. The editor keeps its draft until one is taken."""

    has_editor = False

    def __init__(self, desk: UiContext, take: Callable[[str], None]) -> None:
        """Shows the newest prompts; `take` gets the one that is chosen."""
        self._desk = desk
        self._take = take
        self._query = Line()
        self._found: Sequence[PastPrompt] = ()
        self._problem = ""
        self._at = 0
        self._asking = Newest(desk.spawn, self._ask, self._answered)
        self._asking.want("")

    def rows(self, width: int, height: int) -> list[Row]:
        """What is looked for, what was found, newest first, and from where that is."""
        head = headed("earlier prompts", self._problem)
        return framed(head, lambda room: self._body(width, room), _KEYS, width=width, height=height)

    def key(self, name: str, text: str) -> bool:
        """Take a key; all of them mean something here, or nothing anywhere."""
        match named(name):
            case "enter":
                self._choose()
            case "escape" | "c-c" | "c-g":
                self._desk.close(self)
            case "c-r" | "down" | "c-n":
                self._move(1)
            case "c-s" | "up" | "c-p":
                self._move(-1)
            case _ if self._query.key(name, text):
                self._asking.want(self._query.text)
            case _:
                pass
        self._desk.redraw()
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
        self._desk.close(self)
        if self._found:
            self._take(self._found[self._at].text)

    async def _ask(self, query: str) -> tuple[Sequence[PastPrompt], str]:
        try:
            page = await self._desk.ask(PromptHistory(query=query, limit=FOUND), PromptPage)
        except ClientError as error:
            return (), str(error)
        return page.prompts, "" if page.prompts else "no matches"

    def _answered(self, _: str, answer: tuple[Sequence[PastPrompt], str]) -> None:
        self._found, self._problem = answer
        self._at = 0
        self._desk.redraw()


def _row(prompt: PastPrompt, width: int, *, is_selected: bool) -> Row:
    """The prompt, and at the right where and when that was."""
    where = f"  {cut_front(clean(prompt.cwd), CWD_CELLS)}  {_local(prompt.time)}"
    room = width - cells(where)
    role = TextRole.SELECTED if is_selected else TextRole.TEXT
    if room < CWD_CELLS:
        return [piece(role, cut(clean(prompt.text), width))]
    return [piece(role, padded(clean(prompt.text), room)), piece(TextRole.MUTED, where)]


def _local(moment: str) -> str:
    """RFC 3339 as the user's own time, to the minute."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
