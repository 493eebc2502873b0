"""Reads a streamed answer to its end, whoever sends it and whatever it means."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

from zotd.core.reply import Opened, Part
from zotd.providers.shared.failures import cut
from zotd.providers.shared.sse import EventTooLongError
from zotd.providers.shared.vendors import DRAIN_S, Target


class Answer(Protocol):
    """An open HTTP response (of `httpx2`, which both SDKs use)."""

    def aiter_bytes(self) -> AsyncGenerator[bytes, None]:
        """Its body as it arrives."""
        ...

    async def aclose(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        ...


class Reader(Protocol):
    """Turns a vendor's bytes into parts; state of one reply."""

    @property
    def stopped(self) -> bool:
        """The reply is complete; what may follow means nothing."""
        ...

    def feed(self, chunk: bytes) -> list[Part]:
        """The parts that these bytes complete; raises `ModelError` for an error among them."""
        ...

    def end(self) -> list[Part]:
        """The last parts when the bytes have ended; raises `ModelError` when that was too early."""
        ...


async def parts(
    answer: Answer, reader: Reader, target: Target, broken: type[Exception]
) -> AsyncGenerator[Sequence[Part], None]:
    """`[Opened()]`, then one list of parts for each received chunk that completes any; closes `answer`.

    `broken` is what the HTTP library raises when the connection fails.
    """
    try:
        yield [Opened()]
        async with aclosing(_received(answer, reader)) as replies:
            async for received in replies:
                yield received
    except broken as error:
        if reader.stopped:
            return  # only the connection's end was rude
        raise cut(target, str(error) or type(error).__name__) from error
    except EventTooLongError as error:
        raise cut(target, "an event was longer than 10 MiB") from error
    finally:
        await answer.aclose()


async def _received(answer: Answer, reader: Reader) -> AsyncGenerator[Sequence[Part], None]:
    async with aclosing(answer.aiter_bytes()) as chunks:
        async for chunk in chunks:
            if received := reader.feed(chunk):
                yield received
            if reader.stopped:
                break
        else:
            yield reader.end()
        await _drain(chunks)


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    """Read what follows the last event, usually nothing: only a body read to its end lets the connection live on.

    A new one costs a TLS handshake at each step of a run.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass
