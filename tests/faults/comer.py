"""A client that comes and goes, and keeps every event as the bytes that it came in."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from zotd.wire.base import encode

END = "that was all"
"""The session gets this name when nothing more happens in it: whoever has read that has read everything."""

STAY = 80
"""Frames that are read at most before something else is done."""

NAP_S = 0.2
"""Longest time without reading."""

WAIT_S = 30.0
"""Longest wait for a frame: twice what is between two heartbeats."""

LINE_BYTES = 8 * 1024 * 1024


class Frame(msgspec.Struct, frozen=True):
    """What is looked at of a line."""

    type: str
    id: str | int | None = None
    seq: int | None = None
    name: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"{}")


class Answer(msgspec.Struct, frozen=True):
    """What is looked at of the answer to `attach`."""

    mode: str = ""


@dataclass
class Story:
    """One session, as one client has seen it."""

    session: str
    epoch: str
    lines: list[bytes] = field(default_factory=list)
    """Every event with a `seq`, as it came."""
    seq: int = 0
    attached: int = 0
    refused: int = 0
    """How often its cursor did not hold."""
    is_over: bool = False


class Comer:
    """One client, on one connection after the other."""

    def __init__(self, path: str, story: Story, chance: random.Random) -> None:
        self._path = path
        self._story = story
        self._chance = chance
        self._requests = 0

    async def live(self) -> None:
        """Come and go until the story is over."""
        while not self._story.is_over:
            with suppress(EOFError, ConnectionError):  # it was cut, for it does not always read
                await self._visit()

    async def _visit(self) -> None:
        """One connection, on which it may attach more than once."""
        reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_BYTES)
        try:
            while not self._story.is_over:
                await self._attach(reader, writer)
                await self._read(reader, self._chance.randrange(STAY))
                match self._chance.randrange(5):
                    case 0 | 1:
                        return
                    case 2:
                        await self._detach(reader, writer)
                    case 3:
                        await asyncio.sleep(self._chance.random() * NAP_S)
                        await self._read(reader, self._chance.randrange(STAY))
                    case _:
                        pass
        finally:
            writer.transport.abort()

    async def _attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Events before the answer belong to an attachment that this one ends; the cursor asks for them again."""
        cursor = {"epoch": self._story.epoch, "seq": self._story.seq}
        request = self._send(writer, type="attach", session=self._story.session, after=cursor)
        frame = Frame("")
        while (frame.type, frame.id) != ("response", request):
            _, frame = await _next(reader)
        self._story.attached += 1
        self._story.refused += msgspec.json.decode(frame.data, type=Answer).mode != "resumed"

    async def _detach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = self._send(writer, type="detach", session=self._story.session)
        frame = Frame("")
        while (frame.type, frame.id) != ("response", request):
            frame = await self._take(reader)

    async def _read(self, reader: asyncio.StreamReader, count: int) -> None:
        for _ in range(count):
            if self._story.is_over:
                return
            await self._take(reader)

    async def _take(self, reader: asyncio.StreamReader) -> Frame:
        line, frame = await _next(reader)
        if frame.seq is not None and frame.type != "replay_complete":
            self._story.lines.append(line)
            self._story.seq = frame.seq
            self._story.is_over = frame.type == "session_changed" and frame.name == END
        return frame

    def _send(self, writer: asyncio.StreamWriter, **frame: object) -> int:
        self._requests += 1
        writer.write(encode({"id": self._requests, **frame}) + b"\n")
        return self._requests


async def _next(reader: asyncio.StreamReader) -> tuple[bytes, Frame]:
    """The next line without its newline, and what it is."""
    async with asyncio.timeout(WAIT_S):
        line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line[:-1], msgspec.json.decode(line, type=Frame)
