"""The daemon's log: one line per record, whatever is in it, and no secret.

    2026-11-21T20:11:18.919Z WARNING zotd.store.writer [session=s_01J…] the journal was not closed within 5.0 s

A line break or another control character inside a record is written as its escape, so that nothing that a model, a
tool or a client says can look like a line of its own (or, with bidirectional controls, like another one).
"""

import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 10 * 1024 * 1024
"""Size at which a new file is begun: some days of `info`, and still opened by every editor."""

FILES = 5
"""Older files that are kept beside the current one."""

PRIVATE = 0o600
"""Mode of the files."""

SHORTEST_SECRET = 8
"""Shorter values are not masked: no key is that short, and masking "test" would make the log unreadable."""

MASK = "[hidden]"

_secrets: set[str] = set()  # the keys that this process uses: a few

_KEYED = re.compile(
    r"""(?ix) ( (?: api[_-]?key | authorization | secret | token | password ) ["']? \s* [=:] \s* ["']?
        (?: (?: bearer | basic ) \s+ )? ) [^\s"',;&]+"""
)

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls, line and paragraph separators, and what changes the direction of text (CVE-2021-42574)."""

_about: ContextVar[str] = ContextVar("about", default="")


@contextmanager
def configured(path: Path | None, *, level: str, stderr: bool = False) -> Iterator[None]:
    """While the block runs, records go to the file `path` (0600; its directory is made, 0700), to stderr, or both.

    `level` (`debug`, `info`, `warning`, `error`) is that of our own loggers; others are heard from `warning` on.
    Raises `OSError` when the file cannot be opened.
    """
    # Written by whoever logs: a line into the page cache takes microseconds, and a queue with a thread behind it
    # would lose the last lines before a crash.
    handlers: list[logging.Handler] = [_PrivateFile(path)] if path else []
    if stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    root, ours = logging.getLogger(), logging.getLogger("zotd")
    before = ours.level
    for handler in handlers:
        handler.setFormatter(_Line())
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


def hide(secret: str) -> None:
    """Never write `secret` to the log again, wherever it occurs."""
    if len(secret) >= SHORTEST_SECRET:
        _secrets.add(secret)


def masked(text: str) -> str:
    """`text` without known secrets, and without what stands behind a word such as `api_key=` or `Authorization:`."""
    for secret in sorted(_secrets, key=len, reverse=True):  # a secret may be a part of another one
        text = text.replace(secret, MASK)
    return _KEYED.sub(rf"\1{MASK}", text)


def escaped(text: str) -> str:
    """`text` on one line, with control characters as their escapes."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


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
        return escaped(masked(super().format(record)))


class _PrivateFile(RotatingFileHandler):
    """A log file that only its user can read, also after it was rotated."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A lone surrogate, from a file name for one, is escaped rather than lost with its line.
        super().__init__(path, maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8", errors="backslashreplace")

    def _open(self) -> TextIOWrapper:
        file = open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=_private)  # noqa: SIM115  (closed with the handler)
        os.fchmod(file.fileno(), PRIVATE)  # it may exist with another mode
        return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)
