"""Who may write: strangers get a code once, and are let in when somebody with a shell on this machine repeats it.

Pure: time and randomness are arguments. Codes live in memory only: after a restart a stranger gets a new one.
"""

import hmac
from dataclasses import dataclass

from msgspec import Struct

LIFE_S = 600.0
"""How long a code can be used: time to walk to the machine. Also how long a stranger is silent after being told."""

MAX_OFFERS = 20
"""Codes that are open at once on one channel."""

KEPT_S = 60.0
"""How long a code is safe from strangers who write later: when all are taken, the oldest that is older gives way. So a
channel tells at most `MAX_OFFERS` codes a minute, and a crowd shuts nobody out for longer than that."""

MAX_GUESSES = 5
"""Wrong codes within `LIFE_S`; then every open code is void. 5 tries at 40 bits are no chance."""

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""32 signs that nobody takes for one another."""

CODE_CHARS = 8
CODE_BYTES = CODE_CHARS * 5 // 8
"""Randomness that a code needs."""


class Address(Struct, frozen=True):
    """Somebody on a platform; `channel` is its name, and behind a `/` the room if it has several."""

    channel: str
    sender: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A code that somebody was told."""

    address: Address
    code: str
    expires: float
    metadata: dict[str, object] | None
    """Of the message that was refused: where the good news goes."""


class TooManyGuessesError(Exception):
    """No code is taken until some time has passed."""


class Pairing:
    """The open offers."""

    def __init__(self) -> None:
        self._offers: dict[Address, Offer] = {}
        self._guesses: list[float] = []

    def open(self, now: float) -> list[Offer]:
        """The codes that can be used."""
        self._forget(now)
        return list(self._offers.values())

    def offer(
        self, address: Address, metadata: dict[str, object] | None, *, now: float, randomness: bytes
    ) -> Offer | None:
        """A code for a stranger who wrote; None when nothing is to be said: it was told one, or too many were.

        `now`: seconds since the epoch. `randomness`: `CODE_BYTES` bytes that nobody can guess.
        """
        self._forget(now)
        if address in self._offers:
            return None
        on_channel = [one for one in self._offers.values() if _platform(one.address) == _platform(address)]
        if len(on_channel) >= MAX_OFFERS:
            oldest = min(on_channel, key=lambda one: one.expires)
            if oldest.expires - LIFE_S + KEPT_S > now:
                return None
            del self._offers[oldest.address]
        offer = self._offers[address] = Offer(address, _code(randomness), now + LIFE_S, metadata)
        return offer

    def redeem(self, code: str, *, now: float) -> Offer | None:
        """The offer with this code, which is then used up; None: there is none.

        Raises:
            TooManyGuessesError: too many wrong ones came lately; none is looked at.
        """
        self._forget(now)
        if len(self._guesses) >= MAX_GUESSES:
            raise TooManyGuessesError
        given = "".join(code.upper().split()).replace("-", "").encode()
        # Each one is compared, in constant time: how long it takes tells nothing about any of them.
        found = [one for one in self._offers.values() if hmac.compare_digest(one.code.replace("-", "").encode(), given)]
        if found:
            return self._offers.pop(found[0].address)
        self._guesses.append(now)
        if len(self._guesses) >= MAX_GUESSES:
            self._offers.clear()
        return None

    def withdraw(self, address: Address) -> None:
        """Forget what this stranger was told."""
        self._offers.pop(address, None)

    def _forget(self, now: float) -> None:
        self._offers = {address: one for address, one in self._offers.items() if one.expires > now}
        self._guesses = [when for when in self._guesses if now - when < LIFE_S]


def _platform(address: Address) -> str:
    return address.channel.partition("/")[0]


def _code(randomness: bytes) -> str:
    """Eight signs in two groups."""
    value = int.from_bytes(randomness[:CODE_BYTES], "big")
    signs = [ALPHABET[(value >> shift) & 31] for shift in range(0, 5 * CODE_CHARS, 5)]
    return f"{''.join(signs[:4])}-{''.join(signs[4:])}"
