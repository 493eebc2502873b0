"""What commands, keys and dialogs may do: the application as they see it."""

from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from zotd.client.connection import CALL_S
from zotd.wire.base import Frozen
from zottui.blocks import Block
from zottui.choice import ListChoice
from zottui.state import ViewState
from zottui.theme import Theme

T = TypeVar("T", bound=Frozen)

Row = list[tuple[str, str]]
"""One line of the screen: (style, text) pieces; a style is `class:ROLE` with a role of `zottui.theme`."""


class Dialog(Protocol):
    """Something in the live area that takes the keys: a question, a list to choose from, a panel."""

    has_editor: bool
    """The editor stays below it and takes what the dialog leaves; else it is hidden."""

    def rows(self, width: int, height: int) -> list[Row]:
        """At most `height` lines of at most `width` columns."""
        ...

    def key(self, name: str, text: str) -> bool:
        """Take a key: a name of prompt_toolkit (`up`, `c-c`, `escape`, `enter`, `<any>` with its `text`).

        False: it means nothing here, and goes on to the editor when there is one.
        """
        ...


class UiContext(Protocol):  # noqa: PLR0904  (the whole application, for whoever acts in it)
    """The running terminal client."""

    @property
    def state(self) -> ViewState:
        """As it is now."""
        ...

    @property
    def last_reply(self) -> str:
        """What the model has said last, as Markdown; empty: nothing yet."""
        ...

    @property
    def learnt(self) -> Sequence[ListChoice]:
        """Slash commands of the daemon, of extensions and of skills."""
        ...

    theme: Theme
    """How it looks; what is printed stays as it is."""

    @property
    def cwd(self) -> str:
        """The session's working directory, or before there is one that of this program; a real path."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of this program."""
        ...

    @property
    def text(self) -> str:
        """What is in the editor, with placeholders for what was pasted."""
        ...

    @text.setter
    def text(self, words: str) -> None: ...

    def now(self) -> float:
        """Seconds of the clock that the state's times are of."""
        ...

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Carry out a command of the daemon; raises `zotd.client.errors.ClientError`."""
        ...

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        """Like `ask`, with the role `admin`, on a connection of its own: logins, trust, deleting."""
        ...

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Do that beside; a `ClientError` or `OSError` of it becomes a note, and it ends with the application."""
        ...

    def say(self, words: str, level: str = "info") -> None:
        """Print a line of ours above the live area."""
        ...

    def print(self, *blocks: Block) -> None:
        """Print finished blocks above the live area."""
        ...

    def open(self, dialog: Dialog) -> None:
        """Give it the keys, above those that are open."""
        ...

    def close(self, dialog: Dialog) -> None:
        """Take it away; harmless when it is not open."""
        ...

    def redraw(self) -> None:
        """Something that is shown has changed; drawn within 1/15 s."""
        ...

    def submit(self, text: str, when_busy: str = "queue") -> None:
        """What Enter does: a prompt, a slash command or `!command`. `when_busy`: `queue` or `steer`."""
        ...

    async def switch(self, session_id: str) -> None:
        """Leave this session for that one, and show its last messages."""
        ...

    def ask_again(self) -> None:
        """Open the questions about calls that were put off."""
        ...

    def show_thoughts(self, *, shows: bool) -> None:
        """Print what the model thinks, or not."""
        ...

    def leave(self) -> None:
        """End this client; the session stays."""
        ...

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """The terminal as it was before us, for another program; ours again afterwards."""
        ...

    def write_raw(self, sequence: str) -> None:
        """Send the terminal a sequence that moves nothing: clipboard, title, notification."""
        ...
