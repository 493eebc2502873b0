"""Pairing of senders: a stranger gets a code, and is admitted when a user with a shell on this machine enters it.

Pure: time and randomness are arguments. Codes are kept in memory only; after a restart a stranger gets a new one.
"""

import hmac

from msgspec import Struct

LIFE_S = 600.0
"""How long a code is valid: time to walk to the machine. A stranger gets no further message during that time."""

MAX_OFFERS = 20
"""Limit of open codes on one channel."""

KEPT_S = 60.0
"""How long a code is protected from later strangers: when all are in use, the oldest code above this age is dropped. A
channel therefore sends at most `MAX_OFFERS` codes a minute, and a crowd cannot keep a sender out for longer."""

MAX_GUESSES = 5
"""Limit of wrong codes within `LIFE_S`; after that all open codes are void. A code has 40 bits."""

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""32 characters that are not easily confused."""

CODE_CHARS = 8
CODE_BYTES = CODE_CHARS * 5 // 8
"""Random bytes needed for a code."""


class Address(Struct, frozen=True):
    """A sender on a channel. `channel` may contain a room after a `/`."""

    channel: str
    sender: str


class Offer(Struct, frozen=True):
    """A code that a stranger has received."""

    address: Address
    code: str
    expires: float
    metadata: dict[str, object] | None
    """Metadata of the refused message, so that the confirmation can be sent as its answer."""


class TooManyGuessesError(Exception):
    """Too many wrong codes: none is accepted for some time."""


class Pairing:
    """The open codes."""

    def __init__(self) -> None:
        self._offers: dict[Address, Offer] = {}
        self._guesses: list[float] = []

    def open(self, now: float) -> list[Offer]:
        """Return the valid codes."""
        self._forget(now)
        return list(self._offers.values())

    def offer(
        self, address: Address, metadata: dict[str, object] | None, *, now: float, randomness: bytes
    ) -> Offer | None:
        """Create a code for a stranger; return None if it already has one or the channel has too many.

        `now` is in seconds since the epoch, `randomness` are `CODE_BYTES` unpredictable bytes.
        """
        self._forget(now)
        if address in self._offers:
            return None
        # Rooms of one channel share the limit, because one crowd can write in many rooms.
        on_channel = [one for one in self._offers.values() if _platform(one.address) == _platform(address)]
        if len(on_channel) >= MAX_OFFERS:
            oldest = min(on_channel, key=lambda one: one.expires)
            if oldest.expires - LIFE_S + KEPT_S > now:
                return None
            del self._offers[oldest.address]
        offer = self._offers[address] = Offer(address, _code(randomness), now + LIFE_S, metadata)
        return offer

    def redeem(self, code: str, *, now: float) -> Offer | None:
        """Use up the code; return its offer, or None if the code is wrong.

        Raises:
            TooManyGuessesError: there were too many wrong codes recently, so this one was not checked.
        """
        self._forget(now)
        if len(self._guesses) >= MAX_GUESSES:
            raise TooManyGuessesError
        # Case, spaces and hyphens are ignored, because people type codes from another device.
        given = "".join(code.upper().split()).replace("-", "").encode()
        # All are compared, in constant time, so that the duration reveals nothing about any of them.
        found = [one for one in self._offers.values() if hmac.compare_digest(one.code.replace("-", "").encode(), given)]
        if found:
            return self._offers.pop(found[0].address)
        self._guesses.append(now)
        if len(self._guesses) >= MAX_GUESSES:
            self._offers.clear()
        return None

    def withdraw(self, address: Address) -> None:
        """Withdraw the code of a stranger."""
        self._offers.pop(address, None)

    def _forget(self, now: float) -> None:
        self._offers = {address: one for address, one in self._offers.items() if one.expires > now}
        self._guesses = [when for when in self._guesses if now - when < LIFE_S]


def _platform(address: Address) -> str:
    return address.channel.partition("/")[0]


def _code(randomness: bytes) -> str:
    """Format a code: eight characters in two groups."""
    value = int.from_bytes(randomness[:CODE_BYTES], "big")
    signs = [ALPHABET[(value >> shift) & 31] for shift in range(0, 5 * CODE_CHARS, 5)]
    return f"{''.join(signs[:4])}-{''.join(signs[4:])}"
