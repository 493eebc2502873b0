"""Reports signals and a lost output while a program waits for the daemon, at a point where no data is lost.

A signal handler that raises could interrupt the program between reading bytes and storing them. Here signals only wake
up the wait, which then raises. Reading can continue afterwards, for example to show the end of an aborted run.
"""

import os
import select
import signal
import stat
from collections.abc import Sequence
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedBySignal(Exception):  # noqa: N818  (an interruption, not an error)
    """A signal arrived during `Watch.wait`."""

    def __init__(self, number: int) -> None:
        """`number` is the signal; exit codes are derived from it."""
        super().__init__(signal.strsignal(number))
        self.number = number


class OutputLostError(Exception):
    """The reader of the program's output has gone."""


class Watch:
    """Makes `SIGNALS` end `wait` and have no other effect, while entered. Main thread only."""

    def __init__(self, output: int | None = None) -> None:
        """`output` is a descriptor; if it is a pipe or socket, losing its reader ends the wait as well."""
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
        """Wait as a `blocking.Wait`. Outside of the context, signals have their default effect."""
        return bool(self.wait_any([descriptor], timeout_s))

    def wait_any(self, descriptors: Sequence[int], timeout_s: float | None = None) -> set[int]:
        """Return the descriptors that are readable or at their end; empty on timeout.

        Raises:
            InterruptedBySignal: one of `SIGNALS` arrived; each is reported once.
            OutputLostError: the reader of the output has gone.
        """
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        if self._wake >= 0:
            poll.register(self._wake, select.POLLIN)
        if self._output is not None:
            poll.register(self._output, 0)  # poll always reports errors and hang-ups
        ready = {descriptor for descriptor, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
        if self._wake in ready:
            raise InterruptedBySignal(os.read(self._wake, 1)[0])
        if self._output in ready:
            raise OutputLostError
        return ready


def _ignore(_: int, __: FrameType | None) -> None:
    """Do nothing. Without a Python handler the default action would be taken instead of writing to the wake-up pipe."""


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
