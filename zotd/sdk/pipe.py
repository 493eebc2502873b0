"""The connection to the host: one JSON object per line, on the standard streams of the process.

The protocol uses stdin and stdout, but any code in the process may touch them: a forgotten `print`, or a child that
inherits them. So `open` moves the protocol to other descriptors that no child inherits, replaces stdout by stderr and
stdin by an empty file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping

Frame = dict[str, object]

MAX_LINE_BYTES = 4 * 1024 * 1024
"""The longest line that the host reads (`docs/extensions.md`); a longer answer would be lost."""


def text(frame: Frame, name: str) -> str:
    """Return a text field of a frame; empty if it is absent or not text."""
    value = frame.get(name)
    return value if isinstance(value, str) else ""


def number(frame: Frame, name: str) -> int:
    """Return an integer field of a frame; 0 if it is absent or not an integer."""
    value = frame.get(name)
    return value if isinstance(value, int) else 0


class OversizedError(ValueError):
    """A frame is longer than the host reads, and was not sent."""


def log(text: str) -> None:
    """Write a line to the extension's log, which is its stderr."""
    # None when the process was started without a stderr.
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def log_error(error: BaseException) -> None:
    """Write a traceback to the extension's log."""
    # The interpreter's own hook, because importing `traceback` costs 10 ms.
    sys.__excepthook__(type(error), error, error.__traceback__)


def print_to_log() -> None:
    """Let `print` write to stderr, even before `HostPipe.open` has moved stdout."""
    sys.stdout = sys.stderr


class HostPipe:
    """Frames from and to the host. `send` is thread-safe; `frames` is for one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backlog: list[bytes] = []
        self._input = self._output = -1

    def open(self, hello: Mapping[str, object]) -> None:
        """Take over stdin and stdout, and send `hello` followed by the frames that were sent before."""
        self._input, self._output = os.dup(0), os.dup(1)
        with open(os.devnull, "r+b", buffering=0) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(2 if sys.stderr is not None else nothing.fileno(), 1)
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()  # output buffered before `print_to_log` goes to the log too
        with self._lock:
            self._write(b"".join([encode(hello), *self._backlog]))

    def send(self, frame: Mapping[str, object]) -> None:
        """Send a frame, or queue it before `open`. If the host has gone, the frame is dropped without an error.

        Raises:
            TypeError, ValueError: the frame contains a value that JSON cannot represent.
            OversizedError: the frame is longer than the host reads.
        """
        # Encoded outside the lock, so that a large result does not delay the answers of other threads.
        line = encode(frame)
        with self._lock:
            if self._output < 0:
                self._backlog.append(line)
            else:
                self._write(line)

    def frames(self) -> Iterator[Frame]:
        """Yield the host's frames until it closes the pipe. A line that is not a JSON object is logged and skipped."""
        # Binary: only LF ends a line. Text files also split at characters that are valid in a JSON string.
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
            # A pipe may accept only part of the data.
            while view:
                view = view[os.write(self._output, view) :]
        except BrokenPipeError:
            return  # the end of stdin follows and ends the process


def encode(frame: Mapping[str, object]) -> bytes:
    """Encode a frame as a line. Lone surrogates (file names that are not UTF-8) become `?`, as JSON readers refuse them."""
    text = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain)
    line = text.encode("utf-8", "replace") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise OversizedError(f"result over {MAX_LINE_BYTES // 1024 // 1024} MiB")
    return line


def plain(value: object) -> object:
    """Convert a dataclass to its fields and an Enum to its value, which authors return beside plain JSON."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if hasattr(type(value), "__members__"):
        return getattr(value, "value")  # noqa: B009  the attribute is unknown to the type checker
    raise TypeError(f"{type(value).__name__} is not a JSON value")
