"""The application as dialogs see it, without a terminal and without a daemon."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Self, TypeVar

from prompt_toolkit.utils import get_cwidth

from zotd.client.errors import ClientError
from zotd.wire import api
from zotd.wire.base import Frozen
from zottui.blocks import Block
from zottui.choice import ListChoice
from zottui.dialogs.keys import TYPED
from zottui.state import ViewState
from zottui.theme import PLAIN, Theme
from zottui.ui_context import Dialog, Row, UiContext
from zottui.widgets.cells import POINTER

T = TypeVar("T", bound=Frozen)

Reply = Frozen | ClientError | Callable[[Frozen], Frozen]
"""What the daemon answers: this, this error, or what comes of the parameters."""

TURNS = 20
"""Of the loop, in which spawned work gets as far as it does without the user: no answer here takes longer than one."""


WAIT_S = 40.0
"""For an editor to start and end, on a machine that does a lot besides."""


class FakeUi:
    """Remembers what was done on it; `async with` it, so that nothing spawned is left behind."""

    def __init__(
        self, state: ViewState | None = None, *, cwd: str = "/home/me/p", env: Mapping[str, str] | None = None
    ):
        self.state = state or ViewState()
        self.cwd = cwd
        self.env: Mapping[str, str] = {"HOME": "/home/me"} if env is None else env
        self.text = ""
        self.last_reply = ""
        self.learnt: Sequence[ListChoice] = ()
        self.theme = PLAIN
        self.asked_again = 0
        """How often `ask_again` was called."""
        self.thoughts: list[bool] = []
        """What `show_thoughts` was told."""
        self.time = 100.0
        """What `now` says."""
        self.answers: dict[type[Frozen], Reply] = {}
        """By type of the parameters; without one it is `api.Nothing`."""
        self.asked: list[Frozen] = []
        self.administered: list[Frozen] = []
        self.commands: list[str | None] = []
        """Of what was asked and administered, where it was named."""
        self.said: list[str] = []
        self.levels: list[str] = []
        """Of what was said."""
        self.printed: list[Block] = []
        self.dialogs: list[Dialog] = []
        """That are open, the one with the keys last."""
        self.submitted: list[tuple[str, str]] = []
        self.switched: list[str] = []
        self.has_left = False
        self.redraws = 0
        self.suspensions = 0
        self.raw: list[str] = []
        self._news = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._left: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._left:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)

    # --- for tests --------------------------------------------------------------------------------------------------

    @property
    def dialog(self) -> Dialog | None:
        """The one with the keys."""
        return self.dialogs[-1] if self.dialogs else None

    async def press(self, *keys: str) -> bool:
        """Give the dialog on top these keys, one character or name each; whether it has taken the last."""
        taken = False
        for key in keys:
            taken = self.dialogs[-1].key(TYPED, key) if len(key) == 1 else self.dialogs[-1].key(key, "")
            await self.turn()
        return taken

    async def turn(self) -> None:
        """Let what was spawned go on, as far as it goes without the user."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for what comes from outside, a process say; looks whenever something is said, shown or redrawn."""
        async with asyncio.timeout(WAIT_S):
            while not happened():
                self._news.clear()
                await self._news.wait()
        await self.turn()

    def screen(self, width: int = 80, height: int = 12) -> str:
        """What the dialog on top shows, as text; checks that it stays within its room."""
        return shown(self.dialogs[-1].rows(width, height), width, height)

    # --- as `UiContext` says ---------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self.time

    def edit(self, words: str) -> None:
        self.text = words

    def use_theme(self, theme: Theme) -> None:
        self.theme = theme

    async def ask(
        self,
        params: Frozen,
        result: type[T],
        *,
        command: str | None = None,
        timeout_s: float | None = 30.0,  # noqa: ARG002  (as in `UiContext`)
    ) -> T:
        self.asked.append(params)
        return await self._reply(params, result, command)

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        self.administered.append(params)
        return await self._reply(params, result, command)

    async def _reply(self, params: Frozen, result: type[T], command: str | None) -> T:
        self.commands.append(command)
        await asyncio.sleep(0)
        reply = self.answers.get(type(params), api.Nothing())
        if isinstance(reply, ClientError):
            raise reply
        answer = reply if isinstance(reply, Frozen) else reply(params)
        assert isinstance(answer, result), f"no answer to {params}"
        return answer

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        async def contained() -> None:
            try:
                await work
            except (ClientError, OSError) as error:
                self.say(str(error), "error")

        self._left.append(self._tasks.create_task(contained()))

    def say(self, words: str, level: str = "info") -> None:
        self.said.append(words)
        self.levels.append(level)
        self._news.set()

    def print(self, *blocks: Block) -> None:
        self.printed.extend(blocks)

    def open(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog)

    def close(self, dialog: Dialog) -> None:
        if dialog in self.dialogs:
            self.dialogs.remove(dialog)

    def redraw(self) -> None:
        self.redraws += 1
        self._news.set()

    def submit(self, text: str, when_busy: str = "queue") -> None:
        self.submitted.append((text, when_busy))

    async def switch(self, session_id: str) -> None:
        self.switched.append(session_id)
        self._news.set()

    def ask_again(self) -> None:
        self.asked_again += 1

    def show_thoughts(self, *, shows: bool) -> None:
        self.thoughts.append(shows)

    def leave(self) -> None:
        self.has_left = True

    @asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        self.suspensions += 1
        yield

    def write_raw(self, sequence: str) -> None:
        self.raw.append(sequence)


_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(rows: list[Row], width: int, height: int) -> str:
    """Rows as the text that a terminal would show; fails when they do not fit, or could steer it.

    What is selected has a plain `>` before it.
    """
    lines = ["".join(text for _, text in row) for row in rows]
    assert len(lines) <= height, f"{len(lines)} rows in a height of {height}"
    for line in lines:
        assert not _STEERING.search(line), repr(line)
        assert get_cwidth(line) <= width, f"{get_cwidth(line)} columns in a width of {width}: {line!r}"
    return "\n".join(line.rstrip() for line in lines).replace(POINTER, ">")


def conforms(fake_ui: FakeUi) -> UiContext:
    """For type checkers: the fake satisfies the protocol."""
    return fake_ui
