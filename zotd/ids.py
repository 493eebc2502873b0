"""Ids that sort by time: a prefix per kind and a ULID (48 bits of milliseconds, 80 random bits, Crockford's base 32)."""

import os
import time
from contextlib import suppress

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80

_last = 0


def new(prefix: str) -> str:
    """A new id such as `s_01J…`; two ids of one process sort in the order in which they were made.

    Prefixes: `s` session, `r` run, `i` input, `c` tool call, `o` operation, `a` approval, `t` timer, `k` connection.
    """
    global _last  # noqa: PLW0603  (the one state of the generator)
    value = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big")
    if value <= _last:  # the same millisecond, or a clock that went back
        value = _last + 1
    _last = value
    digits = ""
    for shift in range(125, -1, -5):
        digits += _ALPHABET[(value >> shift) & 31]
    return f"{prefix}_{digits}"


def milliseconds(key: str) -> int:
    """Return when an id was made, in milliseconds since the epoch; 0 if it is no such id."""
    digits, value = key.rpartition("_")[2], 0
    with suppress(ValueError):
        for digit in digits:
            value = value << 5 | _ALPHABET.index(digit)
        return value >> _RANDOM_BITS
    return 0
