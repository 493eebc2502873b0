"""Commands that are sent again, by a client that lost its connection before the answer (`docs/protocol.md`).

The same `request_id` with the same payload gets the first answer again and changes nothing; with another payload it
is refused. Kept in memory, per command and session, for the newest `MAX_KEPT` of them: it outlives connections, not the
daemon. What outlives that, and which commands need it, is in `docs/decisions/0017-clients.md`.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from functools import partial

import msgspec

from zotd.wire.base import Frozen, encode
from zotd.wire.errors import Code, CommandError

MAX_KEPT = 4096
"""Answers that are remembered; a client that reconnects asks within seconds."""

MAX_BYTES = 16 * 1024 * 1024
"""Of these answers together: one has some hundred bytes, but what a command of an extension shows may have a million."""

_SECRET = ("env", "secrets")
"""Fields that are no part of the digest: they hold keys, and a reconnecting client's environment may differ."""


Key = tuple[str, str, str]
"""Command, session and `request_id`."""


@dataclass(frozen=True, slots=True)
class First:
    """The first time that a request was seen."""

    digest: str
    answer: asyncio.Future[Frozen | None]
    """What it was answered; cancelled when it failed, and may then be tried again."""


class Repeats:
    """The requests that were seen."""

    def __init__(self) -> None:
        self._seen: dict[Key, First] = {}
        self._sizes: dict[Key, int] = {}
        """Bytes of those that are answered, oldest first."""
        self._bytes = 0

    def seen(self, command: str, params: Frozen) -> First | None:
        """The first request with this id, if this one repeats it.

        Raises:
            CommandError: the id stood for another payload.
        """
        key = _key(command, params)
        first = self._seen.get(key) if key else None
        if first is not None and first.digest != digest(params):
            raise CommandError(Code.DUPLICATE_KEY, "this request_id was used for another request; make a new one")
        return first

    def begin(self, command: str, params: Frozen) -> asyncio.Future[Frozen | None] | None:
        """Remember a request that is not a repetition; None when it has no `request_id`.

        The caller sets the result, or cancels it when the command failed.
        """
        key = _key(command, params)
        if key is None:
            return None
        answer: asyncio.Future[Frozen | None] = asyncio.get_running_loop().create_future()
        self._seen[key] = First(digest(params), answer)
        answer.add_done_callback(partial(self._answered, key))
        return answer

    def _answered(self, key: Key, answer: asyncio.Future[Frozen | None]) -> None:
        if answer.cancelled():
            del self._seen[key]
            return
        self._sizes[key] = len(encode(answer.result())) + sum(map(len, key))  # of which its sender chose the length
        self._bytes += self._sizes[key]
        while len(self._sizes) > MAX_KEPT or self._bytes > MAX_BYTES:  # never one that is under way: it would run twice
            oldest = next(iter(self._sizes))
            self._bytes -= self._sizes.pop(oldest)
            del self._seen[oldest]


def _key(command: str, params: Frozen) -> Key | None:
    request_id: str | None = getattr(params, "request_id", None)
    if not request_id:
        return None
    return command, getattr(params, "session", None) or "", request_id  # some commands may be about no session


def digest(params: Frozen) -> str:
    """SHA-256 of a request without its secrets, to tell a repetition from another request with the same id."""
    fields = {name: None for name in _SECRET if name in params.__struct_fields__}
    return hashlib.sha256(encode(msgspec.structs.replace(params, **fields))).hexdigest()
