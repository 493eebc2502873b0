"""Makes the first use of a msgspec type safe in threads."""

from threading import Lock
from typing import TypeVar

import msgspec

T = TypeVar("T")

_known: set[object] = set()
_first_use = Lock()


def decodable(kind: T) -> T:
    """Return `kind`, for use in any thread.

    msgspec builds what it knows of a Struct when the type is first decoded or converted. The interpreter crashes with
    SIGSEGV if two threads do so at once (msgspec 0.22), so it is done here, by one of them.
    """
    if kind not in _known:
        with _first_use:
            msgspec.json.Decoder(kind)
            _known.add(kind)
    return kind
