"""The interface of the application for commands, keys and dialogs.

`UiContext` is all of it, for commands and dialogs that combine many parts. A class that needs less names the parts that it
needs: `CommandSender`, or a protocol of its own that joins a few of these.
"""

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
"""One row of the screen as (style, text) fragments; a style is `class:ROLE` with a role of `zottui.theme`."""


class Dialog(Protocol):
    """A part of the live area that gets the keys first: a question, a list to choose from, a panel."""

    has_editor: bool
    """Whether the editor stays visible below it and gets the keys that the dialog refuses."""

    def rows(self, width: int, height: int) -> list[Row]:
        """Return at most `height` rows of at most `width` columns."""
        ...

    def key(self, name: str, text: str) -> bool:
        """Handle a key, given by its prompt_toolkit name (`up`, `c-c`, `escape`, `enter`, `<any>` with its `text`).

        Return False to refuse it: the key is then handled as if the dialog were not open.
        """
        ...


class CommandSender(Protocol):
    """Sends commands to the daemon."""

    async def ask(
        self, params: Frozen, result: type[T], *, command: str | None = None, timeout_s: float | None = CALL_S
    ) -> T:
        """Send a command to the daemon and return its answer; raises `zotd.client.errors.ClientError`."""
        ...


class TaskSpawner(Protocol):
    """Runs coroutines in the background."""

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Run a coroutine in the background until the application ends; its `ClientError` or `OSError` becomes a note."""
        ...


class NotePrinter(Protocol):
    """Prints notes above the live area."""

    def say(self, words: str, level: str = "info") -> None:
        """Print a note above the live area."""
        ...


class Redrawable(Protocol):
    """Draws the live area."""

    def redraw(self) -> None:
        """Schedule a frame, within 1/15 s."""
        ...


class DialogHost(Redrawable, Protocol):
    """Shows dialogs."""

    @property
    def dialog(self) -> Dialog | None:
        """The dialog that gets the keys: the one that was opened last."""
        ...

    def open(self, dialog: Dialog) -> None:
        """Show the dialog above the open ones and give it the keys."""
        ...

    def close(self, dialog: Dialog) -> None:
        """Remove the dialog; no-op if it is not open."""
        ...


class ClientEnvironment(Protocol):
    """Where the client runs."""

    @property
    def env(self) -> Mapping[str, str]:
        """The client's environment variables, which tell where the daemon and its home are."""
        ...


class TerminalLender(ClientEnvironment, Protocol):
    """Lends the terminal to other programs."""

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """Lend the terminal, restored to its original state, to another program for the time of the block."""
        ...


class StateHolder(Protocol):
    """Knows what is on the screen."""

    @property
    def state(self) -> ViewState:
        """The current state; immutable, so a copy stays valid but may be outdated after an await."""
        ...


class UiContext(CommandSender, TaskSpawner, NotePrinter, DialogHost, TerminalLender, StateHolder, Protocol):  # noqa: PLR0904  (everything that commands, keys and dialogs may do)
    """The running terminal client."""

    @property
    def last_reply(self) -> str:
        """The model's last reply as Markdown; empty: none yet."""
        ...

    @property
    def learnt(self) -> Sequence[ListChoice]:
        """Slash commands of the daemon, extensions and skills."""
        ...

    @property
    def theme(self) -> Theme:
        """Colours of everything that is drawn from now on."""
        ...

    def use_theme(self, theme: Theme) -> None:
        """Draw with other colours from now on; the scrollback keeps its own."""
        ...

    @property
    def cwd(self) -> str:
        """The session's working directory, or before a session is attached the client's; a real path."""
        ...

    @property
    def text(self) -> str:
        """The editor's text, with placeholders for long pastes."""
        ...

    def edit(self, words: str) -> None:
        """Replace the editor's text; undo restores it."""
        ...

    def now(self) -> float:
        """Return the clock of the state's times, in seconds."""
        ...

    async def administer(self, params: Frozen, result: type[T], *, command: str | None = None) -> T:
        """Like `ask`, with the role `admin` on a separate connection: for keys and deleting."""
        ...

    def print(self, *blocks: Block) -> None:
        """Print finished blocks above the live area."""
        ...

    def submit(self, text: str, when_busy: str = "queue") -> None:
        """Submit a prompt, a slash command or `!command`, as Enter does. `when_busy` is `queue` or `steer`."""
        ...

    async def switch(self, session_id: str) -> None:
        """Switch to another session and print its last messages."""
        ...

    def ask_again(self) -> None:
        """Show postponed approvals again."""
        ...

    def show_thoughts(self, *, shows: bool) -> None:
        """Print the model's thinking from now on, or hide it."""
        ...

    def leave(self) -> None:
        """End this client; the session continues in the daemon."""
        ...

    def write_raw(self, sequence: str) -> None:
        """Send the terminal a sequence that does not move the cursor: clipboard, title, notification."""
        ...
