"""An extension's process: stdout is split into lines, stderr goes to the log, and both are rate-limited."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from zotd.exthost.allowance import Allowance
from zotd.exthost.jails import ConfinementError
from zotd.exthost.log import ExtensionLog
from zotd.process import Service
from zotd.process.service import ServiceListener
from zotd.wire.framing import SERVER_LIMIT, Lines, TooLong

LINES_PER_S = 2_000
"""Rate of lines that are not answers; a KiB counts as a line. Enough for thirty panels at 60 updates a second."""

LINES_AT_ONCE = 4_000
"""Burst of such lines, for example a thousand registrations at the start."""

SLICE_S = 0.002
"""How long lines are handled without a break. A full pipe can hold 16,000 lines, which would block the event loop for a
quarter of a second."""

PAUSE_S = 0.05
"""Shortest pause of a program over its rate, so that a hundred lines are read at a time rather than each on its own."""

ERRORS_PER_S = 1024 * 1024
"""Rate of stderr, in bytes per second."""

ERRORS_AT_ONCE = 4 * 1024 * 1024

LAST_WORDS_BYTES = 2_048
"""How much of stderr is kept to explain an exit."""

LAST_WORDS_CHARS = 200
"""Longest quotation of stderr in a sentence."""


Begin = Callable[[ServiceListener], Service]
"""Starts a process, or what looks like one. OSError and ValueError mean that nothing was started."""


class ProcessListener(Protocol):
    """Receives the events of a process, on the event loop."""

    def line(self, line: bytes) -> bool:
        """Handle a line of stdout; return True if it was an answer."""
        ...

    def too_long(self, head: bytes) -> None:
        """Handle a skipped line over 4 MiB; `head` is its first 4 KiB."""
        ...

    def closed(self, pipe: str) -> None:
        """The process has closed its `stdin` or `stdout`."""
        ...

    def stalled(self, reason: str) -> None:
        """The process does not read its stdin; `reason` continues its name."""
        ...

    def exited(self, reason: str) -> None:
        """The process has ended and all its lines were delivered; `reason` continues its name. Called once and last."""
        ...


class _Throttle(Struct):
    """Pauses reading from a pipe when more arrives than allowed."""

    allowance: Allowance
    pause: Callable[[], None]
    resume: Callable[[], None]
    until: asyncio.TimerHandle | None = None

    def spend(self, amount: float) -> None:
        loop = asyncio.get_running_loop()
        wait = self.allowance.spend(amount, loop.time())
        # Data that was already read may still arrive during a pause; the running timer covers it.
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
    """A running process of an extension, with line framing and rate limits."""

    def __init__(self, begin: Begin, *, listener: ProcessListener, log: ExtensionLog) -> None:
        """Start the process with `begin`. OSError and ValueError mean that nothing was started."""
        self._listener = listener
        self._log = log
        # Framing keeps at most one unfinished line, so an endless line cannot fill the memory.
        self._lines = Lines(SERVER_LIMIT)
        self._waiting: deque[bytes | TooLong] = deque()
        """Lines that were read but not handled yet. While there are any, the pipe is not read."""
        self._next: asyncio.TimerHandle | None = None
        self._end: str | None = None
        """Description of the exit, once it has ended."""
        self._last_words = b""
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._allowance = Allowance(per_s=LINES_PER_S, burst=LINES_AT_ONCE, now=now)
        self._service = begin(self)
        service = self._service
        self._errors_throttle = _Throttle(
            Allowance(per_s=ERRORS_PER_S, burst=ERRORS_AT_ONCE, now=now), service.pause_errors, service.resume_errors
        )

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group; several extensions may run in one process."""
        return self._service.pid

    def write(self, line: bytes) -> None:
        """Queue a line (without its newline) after all earlier ones; never blocks."""
        self._service.write(line + b"\n")

    def forget_last_words(self) -> None:
        """Do not quote the stderr so far if the process ends later."""
        self._last_words = b""

    def end_input(self) -> None:
        """Close its stdin after all queued lines are written."""
        self._service.end_input()

    def end(self, *, kill: bool) -> None:
        """Send its group SIGKILL or SIGTERM."""
        if kill:
            self._service.kill()
        else:
            self._service.terminate()

    def let_go(self) -> None:
        """Stop reading and leave the process to the next daemon, which reads its further output."""
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
        # The exit is reported by `_hand_on` after the last line: an answer may still be among them.
        self._hand_on()

    # --- details ----------------------------------------------------------------------------------------------

    def _hand_on(self) -> None:
        """Handle waiting lines within the rate limit, for at most `SLICE_S`. After the exit there is no rate limit."""
        self._next = None
        until = self._loop.time() + SLICE_S
        wait = 0.0
        while self._waiting and wait < PAUSE_S and self._loop.time() < until:
            price = self._hand_on_one(self._waiting.popleft())
            if price and self._end is None:
                wait = self._allowance.spend(price, self._loop.time())
        if self._waiting or wait >= PAUSE_S:
            # The pipe fills up while reading is paused, which slows the program down instead of filling our memory.
            self._service.pause_output()
            self._next = self._loop.call_later(wait if wait >= PAUSE_S else 0, self._hand_on)
        elif self._end is not None:
            self._listener.exited(self._end)
        else:
            self._service.resume_output()

    def _hand_on_one(self, line: bytes | TooLong) -> float:
        """Handle one line; return its price for the rate limit, 0 for an answer."""
        if isinstance(line, TooLong):
            self._listener.too_long(line.head)
            # The price of a line of the maximum length, which is at least what was read.
            return SERVER_LIMIT / 1024
        # Answers are free, because the host itself limits how many calls are open.
        return 0.0 if self._listener.line(line) else 1 + len(line) / 1024


def how_it_ended(code: int | None, last_words: bytes = b"") -> str:
    """Describe an exit: code or signal, if known, and the last line of stderr. Continues the extension's name."""
    lines = last_words.decode(errors="replace").split("\n")
    # Tracebacks and most messages of crashes end with the error.
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    how = "ended" if code is None else _how(code)
    return f"{how}: {last[:LAST_WORDS_CHARS]}" if last else how


def why_not_started(error: OSError | ValueError, argv: Sequence[str]) -> str:
    """Explain why a process could not be started; continues the extension's name."""
    if isinstance(error, ConfinementError):
        return str(error)
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
