"""Logging of the daemon: one line per record, with control characters escaped and secrets masked.

    2026-11-21T20:11:18.919Z WARNING zotd.store.writer [session=s_01J…] the journal was not closed within 5.0 s

Line breaks and other control characters are escaped, so that the output of a model, a tool or a client cannot forge a
log line (or, with bidirectional controls, disguise one). If the disk cannot be written, log lines are lost and the daemon
continues.
"""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from zotd.logs.file import RotatedFile
from zotd.logs.flood import Flood
from zotd.logs.masking import MASK, hide, masked
from zotd.sanitize import escaped

__all__ = ["FILES", "FILE_BYTES", "LONGEST", "MASK", "RotatedFile", "about", "configured", "hide", "masked"]

FILE_BYTES = 10 * 1024 * 1024
"""Size at which the log is rotated: some days of `info`, and small enough for every editor."""

FILES = 5
"""Number of files: the current one, and `.1` to `.4`."""

LONGEST = 32 * 1024
"""Maximum length of a record in characters. A traceback has a tenth of that; a client's line may have 16 MiB."""

_about: ContextVar[str] = ContextVar("about", default="")


@contextmanager
def configured(path: Path | None, *, level: str, stderr: bool = False) -> Iterator[None]:
    """While the block runs, records go to the file `path` (0600; its directory is made, 0700), to stderr, or both.

    `level` (`debug`, `info`, `warning`, `error`) is that of our own loggers; others are heard from `warning` on. A file
    that cannot be written is reported on stderr, once, and tried again with each record.
    """
    # Written synchronously by the caller: a write to the page cache takes microseconds, and a queue with a writer
    # thread would lose the last lines before a crash.
    handlers: list[logging.Handler] = [_File(path)] if path else []
    if stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    root, ours = logging.getLogger(), logging.getLogger("zotd")
    before = ours.level
    flood = Flood()
    for handler in handlers:
        handler.setFormatter(_Line())
        handler.addFilter(flood)
        root.addHandler(handler)
    ours.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        ours.setLevel(before)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Records of the block, and of tasks begun in it, carry `fields`: `about(session=id)`, `about(connection=id)`."""
    text = " ".join([_about.get(), *(f"{name}={value}" for name, value in fields.items())]).strip()
    reset = _about.set(text)
    try:
        yield
    finally:
        _about.reset(reset)


class _Line(logging.Formatter):
    """Time in UTC, level, logger, context, message and traceback."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(context)s%(message)s")

    def format(self, record: logging.LogRecord) -> str:
        context = _about.get()
        record.context = f"[{context}] " if context else ""
        # Truncated after masking: a secret that is cut in half would not be recognised.
        line = escaped(masked(super().format(record)))
        if len(line) > LONGEST:
            line = f"{line[:LONGEST]}… ({len(line) - LONGEST} characters more)"
        missing: int = getattr(record, "left_out", 0)
        return f"{line} ({missing} more like this were left out)" if missing else line


class _File(logging.Handler):
    """Writes lines to a private file; if that fails, it reports the error once on stderr and continues."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = RotatedFile(path, file_bytes=FILE_BYTES, files=FILES)
        self._lost = 0
        try:
            self._file.open()
        except OSError as error:
            self._complain(error)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            # A lone surrogate, from a file name for one, is escaped rather than lost with its line.
            line = self.format(record).encode(errors="backslashreplace") + b"\n"
        except Exception:  # noqa: BLE001  (raised by formatting an argument; logging must not break the caller)
            self.handleError(record)
            return
        try:
            if self._lost:
                self._file.write(f"({self._lost} records could not be written here)\n".encode())
            self._file.write(line)
        except OSError as error:
            if not self._lost:
                self._complain(error)
            self._lost += 1
        else:
            self._lost = 0

    def close(self) -> None:
        self._file.close()
        super().close()

    def _complain(self, error: OSError) -> None:
        # Only once: a client that starts the daemon redirects its stderr to a file, which would grow.
        with suppress(OSError):
            sys.stderr.write(escaped(f"zotd: the log {self._file.path} cannot be written: {error.strerror}") + "\n")
