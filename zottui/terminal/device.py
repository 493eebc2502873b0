"""Terminal modes beyond those of prompt_toolkit: title, focus reports, lending to other programs, restoring."""

import asyncio
import signal
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress

from prompt_toolkit.application import in_terminal
from prompt_toolkit.input.vt100 import raw_mode
from prompt_toolkit.output import Output

from zotd.template import foreground
from zottui.terminal import sequences
from zottui.terminal.early import KEYBOARD
from zottui.terminal.environment import understands_osc

TITLE_S = 1.0
"""Least seconds between two titles: window managers redraw for each, and tmux sends it to all its clients."""

CONTINUED_S = 0.2
"""Seconds to wait for SIGCONT after a stop. The loop needs a turn or two to notice it; without a shell that stops this
job, Ctrl-Z pauses for this time."""

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Terminal:
    """The terminal's title, focus and notifications, and lending it to other programs.

    Terminals that would print such sequences as text get none.
    """

    def __init__(
        self, output: Output, env: Mapping[str, str], settled: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`output` is the application's, whose buffer is empty between two frames.

        `settled` is awaited before another program gets the terminal.
        """
        self._settled = settled
        self._has_focus: bool | None = None  # None before the terminal's first report
        self.is_lent = False
        """Whether another program has the terminal."""
        self._output = output
        self._env = env
        self._understands = understands_osc(env)
        self._title = self._shown = ""
        self._pause: asyncio.TimerHandle | None = None
        # Set when this job continues after it was stopped while the terminal was lent.
        self._continued = asyncio.Event()

    @contextmanager
    def prepared(self, continued: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Set the terminal's modes for the block and restore them however it ends. Needs a running event loop.

        `continued` is called when this job continues after a stop from outside: others have written to the terminal.
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
        """Set the modes again after SIGCONT: SIGSTOP comes without warning, and the shell has then set its own modes."""
        if self.is_lent:
            self._continued.set()
            return
        with suppress(termios.error):  # the terminal is gone
            raw_mode(KEYBOARD).__enter__()  # no `__exit__`: prompt_toolkit's own raw mode restores the original state
        if self._understands:
            self.write(sequences.FOCUS_ON)
        continued()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the original modes for a block within `prepared`."""
        self._give_back()
        try:
            yield
        finally:
            self._take()

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[None, None]:
        """Erase the application and restore the modes for another program; draw the application again afterwards."""
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
        """Suspend this process group (Ctrl-Z) until it is continued; without job control, only a short pause."""
        async with self.lent():
            self._continued.clear()
            foreground.stop_job()
            # The loop handles SIGCONT a turn later. If the terminal were taken back before that, the handler would take
            # the area drawn meanwhile for output of others, and draw it once more below.
            with suppress(TimeoutError):
                async with asyncio.timeout(CONTINUED_S):
                    await self._continued.wait()

    def write(self, sequence: str) -> None:
        """Send a sequence that does not move the cursor, and flush."""
        self._output.write_raw(sequence)
        self._output.flush()

    def title(self, text: str) -> None:
        """Set the title within `TITLE_S`, without control characters. Needs a running event loop."""
        self._title = text
        if self._understands and not self._pause:
            self._show_title()

    def focused(self, has_focus: bool) -> None:
        """Take the terminal's report that its window has got or lost the focus; the callback of `Keyboard`."""
        self._has_focus = has_focus

    def notify(self, text: str) -> None:
        """Ring the bell and show a notification if the terminal can, unless it has the focus."""
        if not self._has_focus:
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
        if self._title == self._shown:  # the timer fires without a new title: no further timer is needed
            return
        self._shown = self._title
        self.write(sequences.title(self._title))
        self._pause = asyncio.get_running_loop().call_later(TITLE_S, self._show_title)


@contextmanager
def leaving_on_signals(leave: Callable[[], None]) -> Iterator[None]:
    """Make SIGTERM and SIGHUP leave the application regularly, so that the terminal is restored.

    SIGINT is ignored: in raw mode Ctrl-C is a key. Where it is a signal, it is meant for the program that has borrowed the
    terminal, or was pressed once more while the client leaves, and must not interrupt that. Needs a running event loop.
    `leave` may be called more than once.
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
