"""Finds out what works with a model: one small request for each question, two for the cache.

No session accounts for these requests: they are in no journal and in no sum of usage.
"""

import asyncio
import base64
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from msgspec import Struct

from zotd.core.ports import Model, ModelRequest, ToolSpec
from zotd.core.reply import Assembler, TextChunk
from zotd.core.retry import ModelError
from zotd.wire.api import ModelInfo, ModelProbe
from zotd.wire.content import Image, Message, Text, Thinking, Tokens, ToolCall

PROBE_S = 60.0
"""Longest time for one probe. A model that is loaded for it, or thinks first, takes tens of seconds."""

OUTPUT_TOKENS = 2048
"""Most tokens of a reply. The answers have a few; a model that thinks first needs the rest."""

CACHED_WORDS = 3000
"""Words that are sent twice: vendors cache from 1,024 to 4,096 tokens on."""

REPORT = ToolSpec(
    "report",
    "Reports a word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)

RED_SIDE = 32
"""Width and height of the image, in pixels."""


NOTHING = Tokens()


class _Heard(Struct, frozen=True):
    """One reply."""

    text: str
    pieces: int
    """Deltas of text."""
    calls: list[ToolCall]
    thinks: bool
    tokens: Tokens


class _Verdict(Struct, frozen=True):
    outcome: str
    sentence: str
    tokens: Tokens = NOTHING


async def probe(name: str, model: Model, info: ModelInfo) -> ModelProbe:
    """Find out one of `PROBES`; a failed request is an outcome, too. Takes at most `PROBE_S`."""
    begun = time.monotonic()
    try:
        async with asyncio.timeout(PROBE_S):
            verdict = await PROBES[name](model, info)
    except TimeoutError:
        verdict = _Verdict("no", f"no complete answer within {PROBE_S:g} s")
    except ModelError as error:
        verdict = _Verdict("no", error.sentence)
    return ModelProbe(name, verdict.outcome, verdict.sentence, time.monotonic() - begun, verdict.tokens)


async def _stream(model: Model, _: ModelInfo) -> _Verdict:
    heard = await _ask(model, "Count from 1 to 20, separated by spaces. Write nothing else.")
    if not heard.text.strip():
        return _Verdict("no", "the reply has no text", heard.tokens)
    if heard.pieces < 2:
        return _Verdict("unclear", "the reply came in one piece: the server may not stream", heard.tokens)
    return _Verdict("yes", f"the reply came in {heard.pieces} pieces", heard.tokens)


async def _tools(model: Model, info: ModelInfo) -> _Verdict:
    if info.tools is False:
        return _Verdict("off", "[[models]] in config.toml says that it takes none")
    heard = await _ask(model, "Call the tool report with the word walrus.", tools=[REPORT])
    call = next((call for call in heard.calls if call.name == REPORT.name), None)
    if call is None:
        return _Verdict("no", "the model was asked to call a tool and did not", heard.tokens)
    if "walrus" not in str(call.args.get("word")).lower():
        return _Verdict("unclear", "the model called the tool with other arguments than it was told", heard.tokens)
    return _Verdict("yes", "the model called the tool with the right arguments", heard.tokens)


async def _images(model: Model, info: ModelInfo) -> _Verdict:
    if info.images is False:
        return _Verdict("off", "[[models]] in config.toml says that it takes none")
    heard = await _ask(model, "Which colour does this image have? Answer with one word.", image=_red())
    if "red" in heard.text.lower():
        return _Verdict("yes", "the model named the colour of an image", heard.tokens)
    return _Verdict("unclear", "an image was accepted, but the model did not name its colour", heard.tokens)


async def _reasoning(model: Model, info: ModelInfo) -> _Verdict:
    if not info.reasoning:
        return _Verdict("off", "the catalog knows of no reasoning, so no effort is requested")
    heard = await _ask(model, "What is 17 times 23? Answer with the number.", reasoning="low")
    if heard.thinks:
        return _Verdict("yes", "the model thought before it answered", heard.tokens)
    return _Verdict("unclear", "an effort was accepted; no thoughts were returned", heard.tokens)


async def _caching(model: Model, _: ModelInfo) -> _Verdict:
    system = "Answer with the word ok. Ignore what follows.\n" + "walrus " * CACHED_WORDS
    spent = Tokens()
    for _attempt in range(2):
        heard = await _ask(model, "Answer.", system=system)
        spent += heard.tokens
        if heard.tokens.cache_read:
            read = f"{heard.tokens.cache_read:,} of {heard.tokens.total - heard.tokens.output:,} tokens"
            return _Verdict("yes", f"{read} were read from the cache", spent)
    return _Verdict("unclear", "no tokens were reported as read from the cache when a prompt was repeated", spent)


PROBES: Mapping[str, Callable[[Model, ModelInfo], Awaitable[_Verdict]]] = {
    "stream": _stream,
    "tools": _tools,
    "images": _images,
    "reasoning": _reasoning,
    "caching": _caching,
}
"""By name, in the order in which they are carried out."""


async def _ask(
    model: Model,
    question: str,
    *,
    system: str = "",
    tools: list[ToolSpec] | None = None,
    image: Image | None = None,
    reasoning: str = "off",
) -> _Heard:
    """Send one request and read the reply; raises ModelError."""
    message = Message("user", [Text(question), *([image] if image else [])], "")
    request = ModelRequest(system, [message], tools or [], reasoning, OUTPUT_TOKENS)
    numbers = iter(range(OUTPUT_TOKENS))
    assembler = Assembler(None, lambda: f"c_{next(numbers)}")
    pieces = 0
    async with aclosing(model.stream(request)) as stream:
        async for parts in stream:
            pieces += sum(isinstance(part, TextChunk) for part in parts)
            assembler.feed(parts)
            assembler.check()
    blocks = assembler.message()
    return _Heard(
        assembler.text(),
        pieces,
        [block for block in blocks if isinstance(block, ToolCall)],
        any(isinstance(block, Thinking) for block in blocks),
        model.price(assembler.tokens) if assembler.tokens else Tokens(),
    )


def _red() -> Image:
    """A red square as PNG."""
    rows = (b"\x00" + b"\xff\x00\x00" * RED_SIDE) * RED_SIDE
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", RED_SIDE, RED_SIDE, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return Image("image/png", len(data), base64.b64encode(data).decode())
