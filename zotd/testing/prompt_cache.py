"""A vendor's prompt cache for the scripted model server: what Anthropic documents of its own, by a clock that a test moves.

    cache = PromptCache(clock)
    async with ModelServer(answers, cache=cache) as server: ...

Replies then report the input, the reads and the writes that follow from the requests so far, in place of the script's.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, cast

from zotd.wire.content import Tokens

Json = dict[str, object]

MAX_BREAK_POINTS = 4

LOOK_BACK = 20
"""Blocks that are looked at for an entry, from a break point backwards; the break point is the first of them."""

LEAST_TOKENS = 1024
"""Shorter prompts are not cached."""

CHARS_PER_TOKEN = 4

LIVES = {"5m": 300.0, "1h": 3600.0}
"""By `ttl`; without one it is the first."""


class ManualClock:
    """Seconds since the epoch, which pass only when a test says so."""

    def __init__(self, now: float) -> None:
        """Begins at `now`."""
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


class PromptBlock(NamedTuple):
    """A tool, a part of the system prompt, or a block of a message, in the order in which a cache sees them."""

    digest: str
    """Of everything from the beginning to the end of the block."""
    tokens: int
    """Of everything from the beginning to the end of the block."""
    ttl: str
    """Of the break point at it; empty: there is none."""


@dataclass(slots=True)
class _Entry:
    expires: float
    life_s: float


class PromptCache:
    """What one vendor has cached for one key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: in seconds since the epoch."""
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def forget(self) -> None:
        """Lose everything, as a vendor may at any time."""
        self._entries.clear()

    def problem(self, body: Json) -> str | None:
        """Why the vendor would refuse the break points with 400; None when it would not."""
        ttls = [block.ttl for block in blocks_of(body) if block.ttl]
        if len(ttls) > MAX_BREAK_POINTS:
            return f"A maximum of {MAX_BREAK_POINTS} blocks with cache_control may be provided. Found {len(ttls)}."
        if ttls != sorted(ttls):  # "1h" sorts before "5m"
            return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        return None

    def used(self, body: Json) -> Tokens:
        """Take a request, and return what of it was input, read and written."""
        now, blocks = self._clock(), list(blocks_of(body))
        self._entries = {key: entry for key, entry in self._entries.items() if entry.expires > now}
        points = [at for at, block in enumerate(blocks) if block.ttl and block.tokens >= LEAST_TOKENS]
        found = max((at for point in points if (at := self._hit(blocks, point)) is not None), default=None)
        for block in blocks[: found + 1] if found is not None else ():
            if (entry := self._entries.get(block.digest)) is not None:
                entry.expires = now + entry.life_s
        read = written = for_an_hour = 0 if found is None else blocks[found].tokens
        for point in points:
            block = blocks[point]
            if block.tokens > read and block.digest not in self._entries:
                self._entries[block.digest] = _Entry(now + LIVES[block.ttl], LIVES[block.ttl])
                written = block.tokens
                for_an_hour = block.tokens if block.ttl == "1h" else for_an_hour
        total = blocks[-1].tokens if blocks else 0
        return Tokens(
            input=total - written, cache_read=read, cache_write=written - read, cache_write_hour=for_an_hour - read
        )

    def _hit(self, blocks: Sequence[PromptBlock], point: int) -> int | None:
        """The last block before a break point up to which something is cached."""
        looked_at = range(point, max(-1, point - LOOK_BACK), -1)
        return next((at for at in looked_at if blocks[at].digest in self._entries), None)


def blocks_of(body: Json) -> Iterator[PromptBlock]:
    """Return the blocks of a request of the Messages API, in the order in which the cache sees them."""
    running, chars = sha256(str(body.get("model")).encode()), 0
    for seed, block in _parts(body):
        plain = {name: value for name, value in block.items() if name != "cache_control"}
        data = json.dumps([seed, plain]).encode()
        running.update(data)
        chars += len(data)
        control = cast("dict[str, str] | None", block.get("cache_control"))
        ttl = "" if control is None else control.get("ttl", "5m")
        yield PromptBlock(running.hexdigest(), chars // CHARS_PER_TOKEN, ttl)


def _parts(body: Json) -> Iterator[tuple[str, Json]]:
    """Each block, with what else its cache depends on."""
    for tool in cast("list[Json]", body.get("tools") or []):
        yield "tool", tool
    system = body.get("system") or []
    for part in _listed(system):
        yield "system", part
    thinking = json.dumps([body.get("thinking"), body.get("output_config")])
    for message in cast("list[Json]", body.get("messages") or []):
        for block in _listed(message["content"]):
            yield f"{message['role']} {thinking}", block


def _listed(content: object) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[Json]", content)
