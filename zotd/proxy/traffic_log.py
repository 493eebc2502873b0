"""The log of what went where: one line of JSON for each request to the proxy, in files of a bounded size."""

import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from zotd.logs import RotatedFile
from zotd.proxy.outcomes import ProxyOutcome

FILE_BYTES = 2 * 1024 * 1024
"""Size at which a file is rotated: 8,000 requests."""

FILES = 3
"""Number of files: the current one, `.1` and `.2`."""

log = logging.getLogger(__name__)


class TrafficRecord(msgspec.Struct, frozen=True):
    """A request to the proxy that has ended."""

    time: str
    """When it began, as RFC 3339 in UTC."""
    who: str
    """Whose command it was: a session's id, or the name of a program."""
    host: str
    port: int
    outcome: ProxyOutcome
    reason: str = ""
    """Why the host was not reached, or why the connection was cut: a clause."""
    address: str = ""
    """The address that it was connected to."""
    sent: int = 0
    """Bytes to the host."""
    received: int = 0
    """Bytes from the host."""
    seconds: float = 0.0
    """From the request to the end of the connection."""


class TrafficLog:
    """Writes records to a file that only the user can read. A file that cannot be written stops no connection."""

    def __init__(self, path: Path) -> None:
        """Write to `path`; it is made with the first record."""
        self._file = RotatedFile(path, file_bytes=FILE_BYTES, files=FILES)
        self._is_failing = False

    def add(self, record: TrafficRecord) -> None:
        """Append a record. Blocks for 10 us."""
        try:
            self._file.write(msgspec.json.encode(record) + b"\n")
        except OSError as error:
            if not self._is_failing:
                log.warning("the log of network requests cannot be written: %s", error.strerror)
            self._is_failing = True
        else:
            self._is_failing = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def log_path(home: str) -> Path:
    """Return where the log of a home (`ZOT_HOME`) is."""
    return Path(home, "logs", "network.jsonl")


def read_log(path: Path) -> Iterator[TrafficRecord]:
    """Yield what is in the log, oldest first. Lines that are not records are left out."""
    for number in range(FILES - 1, -1, -1):
        part = path.with_name(f"{path.name}.{number}") if number else path
        try:
            lines = part.read_bytes().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                yield msgspec.json.decode(line, type=TrafficRecord)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
