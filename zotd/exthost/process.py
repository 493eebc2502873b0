"""An extension's process as lines in and out: stdout is cut into lines, stderr goes to the log, neither can flood us."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zotd.exthost.allowance import Allowance
from zotd.exthost.log import ExtensionLog
from zotd.process import Service, ServiceClaim, start_service
from zotd.wire.framing import SERVER_LIMIT, Lines, TooLong

LINES_PER_S = 2_000
"""Lines that nobody asked for, in the long run; a KiB counts as much as a line. Thirty panels at 60 a second fit."""

LINES_AT_ONCE = 4_000
"""The same for a burst, such as a thousand registrations at the start."""

SLICE_S = 0.002
"""How long lines are handed on at a time: what a pipe holds at once can be 16,000 lines, which take a quarter of a second
when each of them is garbage."""

PAUSE_S = 0.05
"""Shortest pause of a program that says too much: its lines come a hundred at a time, and not one by one."""

ERRORS_PER_S = 1024 * 1024
"""Bytes of stderr, in the long run."""

ERRORS_AT_ONCE = 4 * 1024 * 1024

LAST_WORDS_BYTES = 2_048
"""How much of stderr is kept to tell why a process ended."""

LAST_WORDS_CHARS = 200
"""How much of it a sentence quotes."""


class ProcessListener(Protocol):
    """Gets what a process does, on the event loop."""

    def line(self, line: bytes) -> bool:
        """A line of its stdout; whether it was asked for."""
        ...

    def too_long(self, head: bytes) -> None:
        """A line over 4 MiB was skipped; its first 4 KiB."""
        ...

    def closed(self, pipe: str) -> None:
        """It has closed its `stdin` or `stdout`."""
        ...

    def stalled(self, reason: str) -> None:
        """It does not read; `reason` goes on from its name."""
        ...

    def exited(self, reason: str) -> None:
        """It has ended, and every line was delivered; `reason` goes on from its name. Called last, once."""
        ...


@dataclass(slots=True)
class _Throttle:
    """Reads a pipe no more for a while when more came than is allowed."""

    allowance: Allowance
    pause: Callable[[], None]
    resume: Callable[[], None]
    until: asyncio.TimerHandle | None = None

    def spend(self, amount: float) -> None:
        loop = asyncio.get_running_loop()
        wait = self.allowance.spend(amount, loop.time())
        if wait and self.until is None:
            self.pause()
            self.until = loop.call_later(wait, self._go_on)

    def cancel(self) -> None:
        if self.until is not None:
            self.until.cancel()

    def _go_on(self) -> None:
        self.until = None
        self.resume()


class ExtensionProcess:
    """A running process of an extension."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        listener: ProcessListener,
        log: ExtensionLog,
        claim: ServiceClaim | None = None,
    ) -> None:
        """Start it as `start_service` does; `OSError` and `ValueError` mean that nothing was started."""
        self._listener = listener
        self._log = log
        self._lines = Lines(SERVER_LIMIT)
        self._waiting: deque[bytes | TooLong] = deque()
        """Lines that were read and not handed on yet; nothing more is read meanwhile."""
        self._next: asyncio.TimerHandle | None = None
        self._end: str | None = None
        """How it has ended."""
        self._last_words = b""
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._allowance = Allowance(per_s=LINES_PER_S, burst=LINES_AT_ONCE, now=now)
        self._service: Service = start_service(argv, cwd=cwd, env=env, listener=self, claim=claim)
        service = self._service
        self._errors_throttle = _Throttle(
            Allowance(per_s=ERRORS_PER_S, burst=ERRORS_AT_ONCE, now=now), service.pause_errors, service.resume_errors
        )

    @property
    def pid(self) -> int:
        """Its process id, and its group's."""
        return self._service.pid

    def write(self, line: bytes) -> None:
        """Write a line (without its newline) behind all earlier ones; never blocks."""
        self._service.write(line + b"\n")

    def forget_last_words(self) -> None:
        """What it has written to stderr so far is not the reason should it end from now on."""
        self._last_words = b""

    def end_input(self) -> None:
        """Close its stdin when all that waits is written."""
        self._service.end_input()

    def end(self, *, kill: bool) -> None:
        """Send its group SIGKILL or SIGTERM."""
        if kill:
            self._service.kill()
        else:
            self._service.terminate()

    def let_go(self) -> None:
        """Leave it to the next daemon: what it writes from now on is for that one."""
        self._errors_throttle.cancel()
        if self._next is not None:
            self._next.cancel()
        self._service.let_go()

    # --- process.service.ServiceListener -----------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        """Split a chunk of stdout into lines."""
        self._waiting.extend(self._lines.feed(data))
        if self._next is None:
            self._hand_on()

    def errors(self, data: bytes) -> None:
        """Pass a chunk of stderr to the log."""
        self._log.append(data)
        self._last_words = (self._last_words + data)[-LAST_WORDS_BYTES:]
        self._errors_throttle.spend(len(data))

    def closed(self, pipe: str) -> None:
        """Forward to the listener that the process has closed its stdin or stdout."""
        self._listener.closed(pipe)

    def stalled(self, reason: str) -> None:
        """Forward to the listener that the process does not read its stdin."""
        self._listener.stalled(reason)

    def exited(self, code: int | None) -> None:
        """Deliver the remaining lines, then report the exit to the listener."""
        self._errors_throttle.cancel()
        self._end = how_it_ended(code, self._last_words)
        if self._next is not None:
            self._next.cancel()
        self._hand_on()

    # --- details ----------------------------------------------------------------------------------------------

    def _hand_on(self) -> None:
        """Hand on lines: as many as are paid for, for `SLICE_S` at most; those of a process that has ended are free."""
        self._next = None
        until = self._loop.time() + SLICE_S
        wait = 0.0
        while self._waiting and wait < PAUSE_S and self._loop.time() < until:
            price = self._hand_on_one(self._waiting.popleft())
            if price and self._end is None:
                wait = self._allowance.spend(price, self._loop.time())
        if self._waiting or wait >= PAUSE_S:
            self._service.pause_output()
            self._next = self._loop.call_later(wait if wait >= PAUSE_S else 0, self._hand_on)
        elif self._end is not None:
            self._listener.exited(self._end)
        else:
            self._service.resume_output()

    def _hand_on_one(self, line: bytes | TooLong) -> float:
        """Its price; what was asked for is free."""
        if isinstance(line, TooLong):
            self._listener.too_long(line.head)
            return SERVER_LIMIT / 1024
        return 0.0 if self._listener.line(line) else 1 + len(line) / 1024


def how_it_ended(code: int | None, last_words: bytes = b"") -> str:
    """Exit code or signal, if they are known, and the last line of stderr; goes on from the extension's name."""
    lines = last_words.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    how = "ended" if code is None else _how(code)
    return f"{how}: {last[:LAST_WORDS_CHARS]}" if last else how


def why_not_started(error: OSError | ValueError, argv: Sequence[str]) -> str:
    """Goes on from the extension's name."""
    if isinstance(error, OSError) and error.errno:
        return f"could not be started: {error.filename or argv[0]}: {os.strerror(error.errno).lower()}"
    return "could not be started: there is a NUL in its arguments or in the environment"


def _how(code: int) -> str:
    return f"was ended by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
