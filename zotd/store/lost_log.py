"""Detects a truncated or damaged write-ahead log; SQLite uses the intact beginning of such a log without an error.

The index of the log (`zot.db-shm`) survives a kill of the daemon and has the number of committed frames. The log may
hold fewer, because it was cut or a bit of it changed. Undetectable: a log and an index that were both replaced or
removed, and frames that a power failure removed from both.
"""

import struct
from pathlib import Path

from msgspec import Struct

_INDEX_BYTES = 100
"""Length of the part of the index that is read. Its numbers are in the byte order of this machine."""

_HEADER_BYTES = 32
_FRAME_BYTES = 24

_MAGIC = 0x377F0682
"""Its last bit selects the byte order of the checksums."""


class IndexedLog(Struct, frozen=True):
    """State of the log according to its index."""

    frames: int
    """Number of committed frames."""
    stored: int
    """Number of frames already copied into the database; losing these from the log does no harm."""
    salts: bytes
    """Random numbers of the log file; frames with other salts belong to an older log."""


def known(database: Path) -> IndexedLog | None:
    """Read the index of the database's log; None if there is none, or it is not in use.

    Call it before this process opens the database: closing the file would drop SQLite's locks on it, because POSIX
    locks belong to the process and not to the descriptor.
    """
    try:
        with Path(f"{database}-shm").open("rb") as file:
            data = file.read(_INDEX_BYTES)
    except OSError:
        return None
    # Offsets as in the WAL-index format of SQLite: isInit at 12, mxFrame at 16, salts at 32, nBackfill at 96.
    if len(data) < _INDEX_BYTES or data[12] != 1:
        return None
    (frames,) = struct.unpack_from("=I", data, 16)
    (stored,) = struct.unpack_from("=I", data, 96)
    return IndexedLog(frames, stored, data[32:40])


def lost(index: IndexedLog | None, frames: int) -> str | None:
    """Return a message for the user if the log should hold more than `frames` frames; None if nothing is missing."""
    if index is None or frames >= index.frames or index.frames <= index.stored:
        return None
    return (
        f"the end of the journal's log is cut or damaged: {index.frames - max(frames, index.stored)} pages of the last "
        f"commits are lost, with the sessions or messages in them; a backup may have them (`zotctl restore FILE`)"
    )


def frames_in(database: Path, index: IndexedLog) -> int:
    """Count the intact frames of the database's log; takes about a second per 10 MB."""
    try:
        data = Path(f"{database}-wal").read_bytes()
    except OSError:
        return 0
    if len(data) < _HEADER_BYTES:
        return 0
    magic, _, page = struct.unpack_from(">III", data)
    # A log with other salts was started after the index was written: none of the indexed frames is in it.
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
        # Checksums are cumulative, so the first wrong one ends the usable part of the log.
        sums = _summed(data[at : at + 8] + data[at + _FRAME_BYTES : at + size], order, sums)
        if data[at + 8 : at + 16] != index.salts or sums != struct.unpack_from(">II", data, at + 16):
            return number
    return count


def _summed(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    """Continue the cumulative checksum of a SQLite log with `data`."""
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}II", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two
