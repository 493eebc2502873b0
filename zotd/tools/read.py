"""The tool `read`: reads part of a text file, or an image, in constant memory."""

import base64
import codecs
import os
import threading
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import (
    TEXT_BYTES,
    TEXT_LINES,
    UNSAVED,
    BuiltinTool,
    ToolError,
    in_thread,
    open_regular,
    resolve,
    text_outcome,
    unsaved,
)
from zotd.wire.content import Image, Text

SNIFF_BYTES = 8 * 1024
"""A NUL in the first bytes marks a binary file, as in git and grep."""

BLOCK_BYTES = 256 * 1024
"""Block size while skipping to the first requested line."""

IMAGE_BYTES = 3_932_160
"""Largest image: 5 MiB as base64, the limit of the strictest vendor."""


class ReadArgs(msgspec.Struct, frozen=True):
    """Arguments of `read`."""

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory")]
    offset: Annotated[int, Meta(ge=1, description="First line to read, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, description=f"Number of lines, at most {TEXT_LINES}")] = TEXT_LINES


async def _read(args: ReadArgs, context: ToolContext) -> ToolOutcome:
    path = resolve(args.path, context)
    if (data := await unsaved(path, context)) is not None:
        return text_outcome(f"{_text(BytesIO(data), args)}\n[{args.path} {UNSAVED}]")
    return await in_thread(lambda abandoned: _outcome(path, args, abandoned, context))


TOOL = BuiltinTool(
    ReadArgs,
    _read,
    name="read",
    description=(
        f"Read a text file, or look at a PNG, JPEG, GIF or WebP image. Gives at most {TEXT_LINES} lines and "
        f"{TEXT_BYTES // 1024} KiB at a time, and says how to continue. Lines have no numbers added."
    ),
    parallel=True,
    replay=Replay.SAFE,
)


def _outcome(path: Path, args: ReadArgs, abandoned: threading.Event, context: ToolContext) -> ToolOutcome:
    with open_regular(path, context.home, context.jail) as file:
        start: bytes | None = file.read(SNIFF_BYTES)
        if start is None:  # such as /proc/kmsg, which claims to be a regular file
            raise ToolError(f"{args.path} has no data at the moment and no end; use a program in bash")
        kind = _image_kind(start)
        if kind:
            return _image(file, kind, args.path)
        if b"\0" in start:
            raise ToolError(f"{args.path} is a binary file; look into it with a program in bash (file, xxd, strings)")
        file.seek(0)
        return text_outcome(_text(file, args, abandoned))


def _image_kind(start: bytes) -> str | None:
    # By content: a vendor refuses an image whose type does not match its data, and names are often wrong.
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def _image(file: BinaryIO, kind: str, path: str) -> ToolOutcome:
    file.seek(0)
    data = file.read(IMAGE_BYTES + 1)
    if len(data) > IMAGE_BYTES:
        raise ToolError(f"{path} is an image of more than {IMAGE_BYTES:,} bytes; make a smaller copy and read that")
    encoded = base64.b64encode(data).decode("ascii")
    return ToolOutcome([Text(f"{path}: {kind}, {len(data):,} bytes"), Image(kind, len(data), encoded)])


def _text(file: BinaryIO, args: ReadArgs, abandoned: threading.Event | None = None) -> str:
    abandoned = abandoned or threading.Event()
    before = _skip_lines(file, args.offset - 1, abandoned)
    begin = file.tell()
    data = file.read(TEXT_BYTES + 1)  # the extra byte shows whether there is more
    if not data and args.offset > 1:
        raise ToolError(f"{args.path} has {before} lines; offset {args.offset} is past the last one")
    if not data:
        return f"[{args.path} is empty]"
    shown = _whole_lines(data, min(args.limit, TEXT_LINES))
    if not shown:
        file.seek(begin)
        return _long_line(file, args.offset, abandoned)
    text = shown.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    # Files of /proc report a size of 0, but the extra data just read shows that more follows.
    left = max(_size(file) - begin - len(shown), len(data) - len(shown))
    if not left:
        return text
    following = args.offset + shown.count(b"\n")
    return f"{text}\n[{left:,} bytes are left; continue with offset={following}]"


def _skip_lines(file: BinaryIO, wanted: int, abandoned: threading.Event) -> int:
    """Skip lines, at most to the end of the file; return the number of skipped lines."""
    newlines, last = 0, b""
    while newlines < wanted and not abandoned.is_set():
        block = file.read(BLOCK_BYTES)
        if not block:
            return newlines + (last not in b"\n")  # a last line without a newline counts too
        last = block[-1:]
        found = block.count(b"\n")
        if newlines + found >= wanted:
            file.seek(_behind_newline(block, wanted - newlines) - len(block), os.SEEK_CUR)
            return wanted
        newlines += found
    return newlines


def _behind_newline(block: bytes, number: int) -> int:
    """Return the position after the given number of newlines."""
    position = 0
    for _ in range(number):
        position = block.index(b"\n", position) + 1
    return position


def _whole_lines(data: bytes, limit: int) -> bytes:
    """Return the first lines that fit into a result; empty if the first one is too long."""
    if data.count(b"\n") >= limit:
        data = data[: _behind_newline(data, limit)]
    if len(data) <= TEXT_BYTES:
        return data
    return data[: data.rfind(b"\n", 0, TEXT_BYTES) + 1]


def _long_line(file: BinaryIO, number: int, abandoned: threading.Event) -> str:
    """Show the beginning of a line that is longer than a result; the next call continues after the line."""
    begin = file.tell()
    data = file.read(TEXT_BYTES)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data.removeprefix(codecs.BOM_UTF8))  # drops a character that was cut in half
    file.seek(begin)
    _skip_lines(file, 1, abandoned)
    more = file.tell() - begin - len(data)
    left = _size(file) - file.tell()
    onward = f"; continue with offset={number + 1} for the {left:,} bytes behind it" if left > 0 else ""
    return f"{text}\n[line {number} has {more:,} bytes more; look at them with cut -c in bash{onward}]"


def _size(file: BinaryIO) -> int:
    return len(file.getbuffer()) if isinstance(file, BytesIO) else os.fstat(file.fileno()).st_size
