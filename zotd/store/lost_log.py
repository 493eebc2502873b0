"""Tells when the end of a write-ahead log is gone: SQLite goes on with what is left of a log, and says nothing.

The index of the log (`zot.db-shm`) outlives a daemon that was killed. It says how many frames were committed; the log that
is found may hold fewer because it was cut or a bit of it changed. What cannot be told: a log and an index that were both
replaced or removed, and what a power failure took from both.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

_INDEX_BYTES = 100
"""Of the index, whose numbers are in the byte order of this machine, what is looked at."""

_HEADER_BYTES = 32
_FRAME_BYTES = 24

_MAGIC = 0x377F0682
"""The last bit of it says in which byte order the checksums are computed."""


@dataclass(frozen=True, slots=True)
class IndexedLog:
    """What the index says of the log."""

    frames: int
    """That were committed."""
    stored: int
    """How many of them are in the database as well: to lose those from the log costs nothing."""
    salts: bytes


def known(database: Path) -> IndexedLog | None:
    """What the index beside the database says; None: there is none, or it is not in use.

    To be asked before this process opens the database: to close the file again would drop SQLite's locks on it.
    """
    try:
        with Path(f"{database}-shm").open("rb") as file:
            data = file.read(_INDEX_BYTES)
    except OSError:
        return None
    if len(data) < _INDEX_BYTES or data[12] != 1:
        return None
    (frames,) = struct.unpack_from("=I", data, 16)
    (stored,) = struct.unpack_from("=I", data, 96)
    return IndexedLog(frames, stored, data[32:40])


def lost(index: IndexedLog | None, frames: int) -> str | None:
    """A sentence when the log holds `frames` frames and should hold more; None: nothing is missing."""
    if index is None or frames >= index.frames or index.frames <= index.stored:
        return None
    return (
        f"the end of the journal's log is cut or damaged: {index.frames - max(frames, index.stored)} pages of the last "
        f"commits are lost, with the sessions or messages in them; a backup may have them (`zotctl restore FILE`)"
    )


def frames_in(database: Path, index: IndexedLog) -> int:
    """How many frames of the log beside the database are whole; a second for some 10 MB."""
    try:
        data = Path(f"{database}-wal").read_bytes()
    except OSError:
        return 0
    if len(data) < _HEADER_BYTES:
        return 0
    magic, _, page = struct.unpack_from(">III", data)
    if magic & ~1 != _MAGIC or data[16:24] != index.salts:
        return 0
    order = ">" if magic & 1 else "<"
    sums = _summed(data[:24], order, (0, 0))
    if sums != struct.unpack_from(">II", data, 24):
        return 0
    size = _FRAME_BYTES + page
    count = int((len(data) - _HEADER_BYTES) // size)
    for number in range(count):
        at = _HEADER_BYTES + number * size
        sums = _summed(data[at : at + 8] + data[at + _FRAME_BYTES : at + size], order, sums)
        if data[at + 8 : at + 16] != index.salts or sums != struct.unpack_from(">II", data, at + 16):
            return number
    return count


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """The checksum of SQLite's log, continued."""
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
