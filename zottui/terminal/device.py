"""What we change about the terminal beyond what prompt_toolkit does, and how it is put back."""

import asyncio
import os
import signal
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress

from prompt_toolkit.application import in_terminal
from prompt_toolkit.input.vt100 import raw_mode
from prompt_toolkit.output import Output

from zottui.terminal import sequences
from zottui.terminal.early import KEYBOARD
from zottui.terminal.environment import understands_osc

TITLE_S = 1.0
"""The least time between two titles: window managers draw each, and tmux tells all its clients."""

CONTINUED_S = 0.2
"""How long the loop may take to learn that this job goes on: it is a turn or two. Where no shell stops it, Ctrl-Z costs
this time."""

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Terminal:
    """The title of the window, whether it has the focus, notifications, and other programs that borrow it.

    A terminal that would show such sequences as text is asked for nothing.
    """

    def __init__(
        self, output: Output, env: Mapping[str, str], settled: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`output`: the application's, which nothing is waiting in between two frames.

        `settled` is waited for before another program gets the terminal.
        """
        self._settled = settled
        self.has_focus: bool | None = None
        """None while the terminal has not said; set it from what `Keyboard` tells."""
        self.is_lent = False
        """Another program has it."""
        self._output = output
        self._env = env
        self._understands = understands_osc(env)
        self._title = self._shown = ""
        self._pause: asyncio.TimerHandle | None = None
        self._continued = asyncio.Event()
        """This job goes on that was stopped while the terminal was lent."""

    @contextmanager
    def prepared(self, continued: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Ours for this block, in a running event loop; as it was before, however the block ends.

        `continued` is called when this job was stopped from outside and goes on: others have written meanwhile.
        """
        loop = asyncio.get_running_loop()
        self._take()
        loop.add_signal_handler(signal.SIGCONT, self._take_again, continued)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGCONT)
            self._give_back()

    def _take_again(self, continued: Callable[[], None]) -> None:
        """SIGSTOP tells nobody before: the shell has set the terminal as it wants to have it itself."""
        if self.is_lent:
            self._continued.set()
            return
        with suppress(termios.error):  # it is gone
            raw_mode(KEYBOARD).__enter__()  # what puts it back is under way since the beginning
        if self._understands:
            self.write(sequences.FOCUS_ON)
        continued()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """As it was before, for this block within `prepared`."""
        self._give_back()
        try:
            yield
        finally:
            self._take()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None, None]:
        """`restored`, and the application taken away, for another program; afterwards it is drawn again below."""
        if self._settled is not None:
            await self._settled()
        async with in_terminal():
            self.is_lent = True
            try:
                with self.restored():
                    yield
            finally:
                self.is_lent = False

    async def stop(self) -> None:
        """Ctrl-Z: stop this job until somebody continues it; nothing when there is no shell that could."""
        async with self.lent():
            self._continued.clear()
            os.kill(0, signal.SIGTSTP)
            # The loop hears of SIGCONT a turn later. Taken back before that, the area would be drawn, taken for what
            # others have written, and drawn once more below.
            with suppress(TimeoutError):
                async with asyncio.timeout(CONTINUED_S):
                    await self._continued.wait()

    def write(self, sequence: str) -> None:
        """Send a sequence that moves nothing, at once."""
        self._output.write_raw(sequence)
        self._output.flush()

    def title(self, text: str) -> None:
        """Set the title, within a second; in a running event loop. Control characters are taken out of it."""
        self._title = text
        if self._understands and not self._pause:
            self._show_title()

    def notify(self, text: str) -> None:
        """Ring, and show a notification where the terminal can, unless it is known that the user is looking."""
        if not self.has_focus:
            self.write(sequences.notification(text, self._env))

    def _take(self) -> None:
        if not self._understands:
            return
        self.write(sequences.PUSH_TITLE + sequences.FOCUS_ON)
        self._shown = ""
        self._show_title()

    def _give_back(self) -> None:
        if self._pause:
            self._pause.cancel()
            self._pause = None
        back = sequences.FOCUS_OFF + sequences.POP_TITLE if self._understands else ""
        with suppress(OSError):  # the terminal is gone
            self.write(back + sequences.RESTORE)

    def _show_title(self) -> None:
        self._pause = None
        if self._title == self._shown:
            return
        self._shown = self._title
        self.write(sequences.title(self._title))
        self._pause = asyncio.get_running_loop().call_later(TITLE_S, self._show_title)


@contextmanager
def leaving_on_signals(leave: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGHUP end the application as its own command does, so that the terminal is put back.

    SIGINT does nothing: Ctrl-C is a key, and where it is none it belongs to whoever has borrowed the terminal, or was
    pressed once too often and must not cut what leaving has to do. In a running event loop. `leave` may be called more
    than once.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    for number in ENDING:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in (signal.SIGINT, *ENDING):
            loop.remove_signal_handler(number)
