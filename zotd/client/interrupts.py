"""Signals and a lost output, noticed while a program waits for the daemon, at a place where nothing is half done.

A signal handler that raises may strike between reading bytes and keeping them; these only wake the wait, which then
raises. So a frame is never lost, and reading can go on: to see the end of an aborted run, for example.
"""

import os
import select
import signal
import stat
from collections.abc import Sequence
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedBySignal(Exception):  # noqa: N818  (not an error: somebody wants something else now)
    """A signal came while the program waited."""

    def __init__(self, number: int) -> None:
        """Keep the signal's `number`, from which the exit code is derived."""
        super().__init__(signal.strsignal(number))
        self.number = number


class OutputLostError(Exception):
    """Nobody reads the output any more."""


class Watch:
    """While entered, `SIGNALS` do nothing but end `wait`. Main thread only."""

    def __init__(self, output: int | None = None) -> None:
        """`output`: a descriptor whose loss ends the wait too, when it is a pipe or a socket."""
        self._output = output if output is not None and _is_pipe(output) else None
        self._before: list[signal._HANDLER] = []
        self._wake = -1
        self._write_end = -1

    def __enter__(self) -> "Watch":  # noqa: PYI034  (typing costs 4 ms)
        self._wake, self._write_end = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._write_end, False)
        self._before_fd = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._before = [signal.signal(number, _ignore) for number in SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before_fd)
        os.close(self._wake)
        os.close(self._write_end)
        self._wake = -1

    def wait(self, descriptor: int, timeout_s: float | None) -> bool:
        """A `blocking.Wait`, also while not entered; then signals do what they do by default."""
        return bool(self.wait_any([descriptor], timeout_s))

    def wait_any(self, descriptors: Sequence[int], timeout_s: float | None = None) -> set[int]:
        """Which of `descriptors` can be read, or have ended; empty when the time is up.

        Raises:
            InterruptedBySignal: one of `SIGNALS` came; each is told once.
            OutputLostError: whoever read the output is gone.
        """
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        if self._wake >= 0:
            poll.register(self._wake, select.POLLIN)
        if self._output is not None:
            poll.register(self._output, 0)  # errors and hang-ups are always told
        ready = {descriptor for descriptor, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
        if self._wake in ready:
            raise InterruptedBySignal(os.read(self._wake, 1)[0])
        if self._output in ready:
            raise OutputLostError
        return ready


def _ignore(_: int, __: FrameType | None) -> None:
    """A handler has to exist, or the signal would do what it does by default."""


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
