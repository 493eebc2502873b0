"""The line to the host: one JSON object per line, on the standard streams of the process.

The protocol owns stdin and stdout, but everything in the process may touch them: a forgotten `print`, a child that
inherits them. So `open` moves the protocol to descriptors of its own that no child inherits, and puts stderr where
stdout was and an empty file where stdin was.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping

Frame = dict[str, object]

MAX_LINE_BYTES = 4 * 1024 * 1024
"""The longest line that the host reads (`docs/extensions.md`); a longer one is lost to the call it answers."""


def text(frame: Frame, name: str) -> str:
    """A text field of a frame; empty if it is absent or no text."""
    value = frame.get(name)
    return value if isinstance(value, str) else ""


def number(frame: Frame, name: str) -> int:
    """An integer field of a frame; 0 if it is absent or no integer."""
    value = frame.get(name)
    return value if isinstance(value, int) else 0


class OversizedError(ValueError):
    """A frame is longer than the host would read; it was not sent."""


def log(text: str) -> None:
    """One line in the extension's log, which is its stderr."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def log_error(error: BaseException) -> None:
    """The traceback in the extension's log."""
    # The interpreter's own printer: the module `traceback` is not needed at start, and costs 10 ms.
    sys.__excepthook__(type(error), error, error.__traceback__)


def print_to_log() -> None:
    """Let `print` write to stderr, even before `HostPipe.open` has moved stdout."""
    sys.stdout = sys.stderr


class HostPipe:
    """Frames from and to the host. `send` may be called by any thread at any time, `frames` by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backlog: list[bytes] = []
        self._input = self._output = -1

    def open(self, hello: Mapping[str, object]) -> None:
        """Take stdin and stdout, send `hello`, and after it what was sent before."""
        self._input, self._output = os.dup(0), os.dup(1)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(2 if sys.stderr is not None else nothing.fileno(), 1)
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()  # what was printed before `print_to_log`, and was buffered, now goes to the log too
        with self._lock:
            self._write(b"".join([encode(hello), *self._backlog]))

    def send(self, frame: Mapping[str, object]) -> None:
        """Send a frame; before `open`, keep it for then. A host that is gone gets nothing, without an error.

        Raises:
            TypeError, ValueError: the frame holds something that JSON has no word for.
            OversizedError: it is longer than the host reads.
        """
        line = encode(frame)
        with self._lock:
            if self._output < 0:
                self._backlog.append(line)
            else:
                self._write(line)

    def frames(self) -> Iterator[Frame]:
        """What the host sends, until it closes the pipe. A line that is no JSON object is logged and skipped."""
        # Binary: only LF ends a line, for text files also split at characters that may stand in a JSON string.
        with open(self._input, "rb") as lines:
            for line in lines:
                try:
                    frame = json.loads(line)
                except (ValueError, RecursionError):
                    frame = None
                if isinstance(frame, dict):
                    yield frame
                elif line.strip():
                    log(f"skipped a line from the host that is no JSON object: {line[:200]!r}")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._output, view) :]
        except BrokenPipeError:
            return  # the end of stdin, which follows, ends the process


def encode(frame: Mapping[str, object]) -> bytes:
    """One line. Lone surrogates (names of files that are no UTF-8) become `?`: no JSON reader would take them."""
    text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    line = text.encode("utf-8", "replace") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise OversizedError(f"result over {MAX_LINE_BYTES // 1024 // 1024} MiB")
    return line


def plain(value: object) -> object:
    """The fields of a dataclass, the value of an Enum: what authors return beside plain JSON."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if hasattr(type(value), "__members__"):
        return getattr(value, "value")  # noqa: B009  no type has told that it is there
    raise TypeError(f"{type(value).__name__} is no JSON value")
