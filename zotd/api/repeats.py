"""Recognises requests that a client repeats because it lost its connection before the response (`docs/protocol.md`).

The same `request_id` with the same payload gets the first response again and changes nothing; with another payload it
is refused. Kept in memory for the newest `MAX_KEPT` requests of all sessions: it survives connections, not the daemon.
`docs/decisions/0017-clients.md` says what survives a restart, and which commands need that.
"""

import asyncio
import hashlib
from functools import partial

import msgspec
from msgspec import Struct

from zotd.wire.base import Frozen, encode
from zotd.wire.errors import Code, CommandError

MAX_KEPT = 4096
"""Maximum number of remembered responses; a client that reconnects repeats its request within seconds."""

MAX_BYTES = 16 * 1024 * 1024
"""Maximum size of these responses. Most have some hundred bytes; that of an extension's command up to a million."""

_SECRET = ("env", "secrets")
"""Fields that the digest omits: they contain keys, and the environment of a reconnecting client may differ."""


Key = tuple[str, str, str]
"""Command, session and `request_id`."""


class First(Struct, frozen=True):
    """The first request with an id."""

    digest: str
    answer: asyncio.Future[Frozen | None]
    """Its response; cancelled if it failed, and may then be tried again."""


class Repeats:
    """Recently seen requests and their responses."""

    def __init__(self) -> None:
        self._seen: dict[Key, First] = {}
        self._sizes: dict[Key, int] = {}
        """Size of each response in bytes, oldest first."""
        self._bytes = 0

    def seen(self, command: str, params: Frozen) -> First | None:
        """Return the first request with the same id, or None if there is none.

        Raises:
            CommandError: the id was used for another payload.
        """
        key = _key(command, params)
        first = self._seen.get(key) if key else None
        if first is not None and first.digest != digest(params):
            raise CommandError(Code.DUPLICATE_KEY, "this request_id was used for another request; make a new one")
        return first

    def begin(self, command: str, params: Frozen) -> asyncio.Future[Frozen | None] | None:
        """Remember a new request; None if it has no `request_id`.

        The caller sets the result of the returned future to the response, or cancels it if the command failed.
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
        self._sizes[key] = len(encode(answer.result())) + sum(map(len, key))  # clients choose the length of the key
        self._bytes += self._sizes[key]
        # Only answered requests are evicted: a repetition of one that still runs would run it twice.
        while len(self._sizes) > MAX_KEPT or self._bytes > MAX_BYTES:
            oldest = next(iter(self._sizes))
            self._bytes -= self._sizes.pop(oldest)
            del self._seen[oldest]


def _key(command: str, params: Frozen) -> Key | None:
    request_id: str | None = getattr(params, "request_id", None)
    if not request_id:
        return None
    return command, getattr(params, "session", None) or "", request_id  # some commands work without a session


def digest(params: Frozen) -> str:
    """Return the SHA-256 of a request without its secrets, to recognise repetitions."""
    fields = {name: None for name in _SECRET if name in params.__struct_fields__}
    return hashlib.sha256(encode(msgspec.structs.replace(params, **fields))).hexdigest()
