"""Commands that are sent again, by a client that lost its connection before the answer (`docs/protocol.md`).

The same `request_id` with the same payload gets the first answer again and changes nothing; with another payload it
is refused. Kept in memory, per session, for the newest `MAX_KEPT` of them.
"""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from zotd.wire.base import Frozen, encode
from zotd.wire.errors import Code, CommandError

MAX_KEPT = 4096
"""Answers that are remembered; a client that reconnects asks within seconds."""

_SECRET = ("env", "secrets")
"""Fields that are no part of the digest: they hold keys, and a reconnecting client's environment may differ."""


@dataclass(frozen=True, slots=True)
class First:
    """The first time that a request was seen."""

    digest: str
    answer: asyncio.Future[Frozen | None]
    """What it was answered; cancelled when it failed, and may then be tried again."""


class Repeats:
    """The requests that were seen."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str, str], First] = OrderedDict()

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
        answer.add_done_callback(lambda done: self._seen.pop(key, None) if done.cancelled() else None)
        if len(self._seen) > MAX_KEPT:
            self._seen.popitem(last=False)
        return answer


def _key(command: str, params: Frozen) -> tuple[str, str, str] | None:
    request_id: str | None = getattr(params, "request_id", None)
    return (command, getattr(params, "session", ""), request_id) if request_id else None


def digest(params: Frozen) -> str:
    """SHA-256 of a request without its secrets, to tell a repetition from another request with the same id."""
    fields = {name: None for name in _SECRET if name in params.__struct_fields__}
    return hashlib.sha256(encode(msgspec.structs.replace(params, **fields))).hexdigest()
