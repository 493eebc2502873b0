"""Reads a streamed answer to its end, for all vendors.

bytes ──> Events | JsonLines ──> data of each event, or line ──> PartReader ──> parts
     └──> the document that some servers send instead of events ──> PartReader.whole
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from zotd.core.reply import Part, RequestAccepted
from zotd.core.retry import ModelError
from zotd.providers.shared.failures import cut, foreign, too_large
from zotd.providers.shared.limits import EVENT_BYTES, REPLY_BYTES, REPLY_S, SLICE_BYTES, WHOLE_BYTES
from zotd.providers.shared.vendors import DRAIN_S, Target
from zotd.wire.framing import Lines, TooLong

_BLANK = b"\xef\xbb\xbf \t\r\n"
"""What may stand before a document: a byte order mark, and spaces."""


class HttpResponse(Protocol):
    """An open HTTP response (of `httpx2`, which both SDKs use)."""

    def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Its body as it arrives."""
        ...

    async def aclose(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        ...


class Framing(Protocol):
    """Cuts the bytes of one stream into frames, without I/O. Any cutting of the bytes gives the same frames."""

    document_instead: bool
    """A `{` at the beginning means that a document came instead of frames."""
    is_over: bool
    """A frame is longer than the limit: nothing more can be read from this stream."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that `chunk` completes, oldest first; also those before one that is too long."""
        ...

    def end(self) -> list[bytes]:
        """The frame that the end of the stream has left open."""
        ...


class PartReader(Protocol):
    """Turns a vendor's events into parts; state of one reply."""

    @property
    def frames(self) -> Framing:
        """What cuts the stream of this reply."""
        ...

    @property
    def stopped(self) -> bool:
        """The reply is complete; what may follow means nothing."""
        ...

    @property
    def failure(self) -> ModelError | None:
        """Why nothing more can be read; the parts before it were given."""
        ...

    def feed(self, events: Sequence[bytes]) -> list[Part]:
        """The parts that these events complete, by the data of each, up to an error among them (`failure`)."""
        ...

    def end(self) -> list[Part]:
        """The last parts when the events have ended; `failure` when that was too early."""
        ...

    def rest(self) -> list[Part]:
        """What was held back, when nothing more can be read."""
        ...

    def whole(self, body: bytes) -> list[Part]:
        """The parts of a reply that came as one JSON document; `failure` when it is none."""
        ...


class Events:
    """The data of server-sent events (WHATWG HTML, 9.2.6); satisfies `Framing`.

    Only `data` is kept: all vendors repeat the event's name inside it. A
    lone CR, which the specification also allows, ends no line: no vendor sends one, and it would hold back every chunk
    that ends in CR.
    """

    document_instead = True

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        """`limit`: memory held never exceeds it by more than one feed."""
        self._limit = limit
        self._tail: list[bytes] = []
        """Pieces of a line that has no end yet."""
        self._data: list[bytes] = []
        """Lines of an event that has no end yet."""
        self._held = 0
        self.is_over = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """See `Framing`."""
        if self.is_over:
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
        events = self._events(lines)
        if rest and not self.is_over:
            self._tail.append(rest)
            self._count(len(rest))
        return events

    def end(self) -> list[bytes]:
        """What an event holds that the end of the stream left without its blank line.

        The specification drops it; some servers end so after a good last event, and JSON tells whether it is whole.
        """
        line = b"".join(self._tail)
        self._tail.clear()
        return self._events([line, b""])

    def _events(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                value = line[5:].removesuffix(b"\r").removeprefix(b" ")
                data.append(value)
                self._count(len(value))
                if self.is_over:
                    break
            elif data and (not line or line == b"\r"):
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._held = 0
        return events

    def _count(self, size: int) -> None:
        self._held += size
        if self._held > self._limit:
            self.is_over = True
            self._tail.clear()
            self._data.clear()


class JsonLines:
    """The lines of NDJSON, each a document; satisfies `Framing`."""

    document_instead = False

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        """`limit`: longest line, in bytes."""
        self._lines = Lines(limit)
        self.is_over = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """See `Framing`."""
        return self._whole(self._lines.feed(chunk))

    def end(self) -> list[bytes]:
        """See `Framing`."""
        return self._whole(self._lines.end())

    def _whole(self, lines: list[bytes | TooLong]) -> list[bytes]:
        found: list[bytes] = []
        for line in lines:
            if isinstance(line, TooLong):
                self.is_over = True
                break
            found.append(line)
        return found


async def parts(
    answer: HttpResponse, reader: PartReader, target: Target, broken: type[Exception]
) -> AsyncGenerator[Sequence[Part], None]:
    """`[Opened()]`, then one list of parts for each received chunk that completes any; closes `answer`.

    `broken` is what the HTTP library raises when the connection fails.
    """
    try:
        yield [RequestAccepted()]
        async with aclosing(_received(answer, reader, target)) as replies:
            async for received in replies:
                yield received
    except broken as error:
        if reader.stopped:
            return  # only the connection's end was rude
        if held := reader.rest():
            yield held
        raise cut(target, str(error) or type(error).__name__) from error
    finally:
        await answer.aclose()


async def _received(answer: HttpResponse, reader: PartReader, target: Target) -> AsyncGenerator[Sequence[Part], None]:
    form = _Form(reader, target)
    async with aclosing(answer.aiter_bytes()) as chunks, aclosing(_sliced(chunks)) as slices:
        async for chunk in slices:
            if received := form.feed(chunk):
                yield received
            if form.failure is not None:
                raise form.failure
            if reader.stopped:
                break
        else:
            yield form.end()
            if form.failure is not None:
                raise form.failure
        await _drain(chunks)


async def _sliced(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same bytes, no more than `SLICE_BYTES` between two turns of the event loop."""
    async for chunk in chunks:
        yield chunk[:SLICE_BYTES]
        for start in range(SLICE_BYTES, len(chunk), SLICE_BYTES):
            await asyncio.sleep(0)
            yield chunk[start : start + SLICE_BYTES]


class _Form:
    """Tells a stream from what servers send in its place, and counts how much comes.

    Servers that do not know `stream` send one JSON document; what is no model server, or stands before one, sends a
    web page. Neither says so reliably in its Content-Type; no line of server-sent events begins with `{` or `<`.
    """

    def __init__(self, reader: PartReader, target: Target) -> None:
        self._reader = reader
        self._target = target
        self._frames = reader.frames
        self._document: list[bytes] | None = None
        self._knows = False
        self._size = 0
        self._until = asyncio.get_running_loop().time() + REPLY_S
        self._failure: ModelError | None = None

    @property
    def failure(self) -> ModelError | None:
        """Why nothing more is read."""
        return self._failure or self._reader.failure

    def feed(self, chunk: bytes) -> list[Part]:
        """The parts that these bytes complete."""
        self._size += len(chunk)
        if not self._knows:
            self._look(chunk)
        if self._failure is not None:
            return []
        if self._document is not None:
            self._document.append(chunk)
            received: list[Part] = []
        else:
            received = self._reader.feed(self._frames.feed(chunk))
            if self._frames.is_over and self.failure is None:
                received += self._reader.rest()
                self._failure = too_large(self._target, f"an event of more than {EVENT_BYTES // 1024**2} MiB")
        self._limit()
        return received

    def end(self) -> list[Part]:
        """The last parts."""
        if self._document is None:
            return [*self._reader.feed(self._frames.end()), *self._reader.end()]
        return self._reader.whole(b"".join(self._document).strip(_BLANK))

    def _look(self, chunk: bytes) -> None:
        first = chunk.lstrip(_BLANK)[:1]
        self._knows = bool(first)
        if first == b"{" and self._frames.document_instead:
            self._document = []
        elif first == b"<":
            self._failure = foreign(self._target, "a web page", chunk)

    def _limit(self) -> None:
        if self._reader.stopped or self.failure is not None:
            return
        limit = REPLY_BYTES if self._document is None else WHOLE_BYTES
        if self._size > limit:
            self._failure = too_large(self._target, f"more than {limit // 1024**2} MiB")
        elif asyncio.get_running_loop().time() > self._until:
            self._failure = too_large(self._target, f"a reply without an end for {REPLY_S / 3600:.0f} h")


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read what follows the last event, usually nothing: only a body read to its end lets the connection live on.

    A new one costs a TLS handshake at each step of a run.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass
