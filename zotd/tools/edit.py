"""The tool `edit`: exact replacements in one file, all of them or none.

The search works on text with LF line ends. Positions found there are mapped back to the file, so that every byte outside
of the replaced text stays unchanged. The diff is built from these positions: comparing whole files would need quadratic
memory, although the changes are known.
"""

import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from zotd.core.call_jail import CallJail
from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import (
    TEXT_BYTES,
    BuiltinTool,
    ToolError,
    errors_after,
    in_thread,
    open_regular,
    resolve,
    text_outcome,
    unsaved,
    write_through,
)
from zotd.wire.base import convert

FILE_BYTES = 64 * 1024 * 1024
"""Largest file. Up to three copies of it are in memory."""

CONTEXT_LINES = 3
"""Unchanged lines around a change in the diff."""


class Edit(msgspec.Struct, frozen=True, rename="camel"):
    """One replacement, as the model requests it."""

    old_text: Annotated[str, Meta(description="Text to replace; must occur exactly once in the current file")]
    new_text: Annotated[str, Meta(description="Text to put there")]


class EditArgs(msgspec.Struct, frozen=True):
    """Arguments of `edit`."""

    path: Annotated[str, Meta(description="Path of the file, absolute or relative to the working directory")]
    edits: Annotated[list[Edit], Meta(min_length=1, description="Replacements; they must not overlap")]


class Change(Struct, frozen=True):
    """Replaces the bytes `start` to `end` of the file by `new`. `number` is the edit's position in the call, from 1."""

    start: int
    end: int
    new: bytes
    number: int


async def _edit(args: EditArgs, context: ToolContext) -> ToolOutcome:
    path = resolve(args.path, context)
    changed = await unsaved(path, context)
    before, data, shown = await in_thread(lambda _: _apply(path, args, context.jail, changed))
    await write_through(path, data, context)
    return text_outcome(shown + await errors_after(path, before, data, context))


TOOL = BuiltinTool(
    EditArgs,
    _edit,
    name="edit",
    description=(
        "Replace text in a file. Each oldText must occur exactly once in the file: add lines around it until it does. "
        "Several edits of one file belong into one call; all are found in the file as it was before the call. "
        "Line ends match whatever the file uses."
    ),
    parallel=False,
    replay=Replay.NEVER,
)


def diff_of(path: Path, args: Mapping[str, object]) -> str:
    """Return the unified diff of a call with these arguments to the file `path`, without changing it. Blocks.

    Raises:
        ToolError, BadFrameError, OSError: the call would fail; the message says why.
    """
    wanted = convert(args, EditArgs)
    data = _content(path, wanted)
    return unified_diff(data, _changes(data, wanted), wanted.path)


def _apply(path: Path, args: EditArgs, jail: CallJail | None, changed: bytes | None) -> tuple[bytes, bytes, str]:
    """Return the old and the new content of the file, and what the model is told. `changed`: what the editor has, if not the same."""
    data = _content(path, args, jail) if changed is None else changed
    changes = _changes(data, args)
    pieces: list[bytes] = []
    position = 0
    for change in changes:
        pieces += [data[position : change.start], change.new]
        position = change.end
    count = "1 replacement" if len(changes) == 1 else f"{len(changes)} replacements"
    shown = f"Edited {args.path}: {count}\n\n{unified_diff(data, changes, args.path)}"
    return data, b"".join([*pieces, data[position:]]), shown


def _content(path: Path, args: EditArgs, jail: CallJail | None = None) -> bytes:
    with open_regular(path, jail=jail) as file:
        if os.fstat(file.fileno()).st_size > FILE_BYTES:
            raise ToolError(f"{args.path} has more than {FILE_BYTES:,} bytes; change it with a program in bash")
        return file.read()


# --- finding ----------------------------------------------------------------------------------------------------


def _changes(data: bytes, args: EditArgs) -> list[Change]:
    """Locate each edit; return the changes in the order of the file."""
    text = data.replace(b"\r\n", b"\n")
    # Positions in `text` of newlines that have lost their CR. An array takes a fraction of the memory of a list.
    shortened = array("q", (match.start() - i for i, match in enumerate(re.finditer(rb"\r\n", data))))
    changes: list[Change] = []
    for number, edit in enumerate(args.edits, 1):
        old = edit.old_text.encode().replace(b"\r\n", b"\n")
        # Such an edit is a mistake of the model; reporting success would hide it.
        if edit.old_text == edit.new_text:
            raise ToolError(f"edit {number}: newText is the same as oldText; leave that edit out")
        begin = _only_place(text, old, f"edit {number}", args.path)
        # Every CR removed before a position shifts it by one byte.
        start = begin + bisect_left(shortened, begin)
        end = begin + len(old) + bisect_left(shortened, begin + len(old))
        # The new text gets the line ends of its place, so that the file does not become mixed.
        new = _with_line_ends(edit.new_text.encode(), crlf=_is_crlf_at(data, start))
        changes.append(Change(start, end, new, number))
    changes.sort(key=lambda change: change.start)
    # Applying overlapping edits would make the result depend on their order.
    for one, other in pairwise(changes):
        if other.start < one.end:
            raise ToolError(f"edits {one.number} and {other.number} overlap in {args.path}; make one edit of them")
    return changes


def _only_place(text: bytes, old: bytes, name: str, path: str) -> int:
    if not old:
        raise ToolError(f"{name}: oldText is empty; give text that occurs in {path}, or use write")
    place = text.find(old)
    if place < 0:
        raise ToolError(f"{name}: oldText not found in {path}; read the file, and copy the text exactly")
    if text.find(old, place + 1) >= 0:
        times = max(text.count(old), 2)  # `count` misses overlapping matches
        raise ToolError(f"{name}: oldText matches {times} times in {path}; make it unique")
    return place


def _is_crlf_at(data: bytes, place: int) -> bool:
    """Return True if the line at `place` ends with CRLF; for the last line, the one before decides."""
    newline = data.find(b"\n", place)
    if newline < 0:
        newline = data.rfind(b"\n", 0, place)
    return newline > 0 and data[newline - 1 : newline] == b"\r"


def _with_line_ends(text: bytes, *, crlf: bool) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if crlf else text


# --- showing ----------------------------------------------------------------------------------------------------


class Region(Struct, frozen=True):
    """Lines that are replaced: bytes `start` to `end` of the file, `line` lines after its beginning."""

    start: int
    end: int
    line: int
    old: list[bytes]
    new: list[bytes]


def unified_diff(data: bytes, changes: list[Change], path: str) -> str:
    """Return the changes, in the order of the file, as a unified diff that is cut at `TEXT_BYTES`."""
    shown = [f"--- {path}", f"+++ {path}"]
    size = 0
    for line in _diff_lines(data, _regions(data, changes)):
        size += len(line) + 1
        if size > TEXT_BYTES:
            shown.append("[the rest of the diff is too long to be shown]")
            break
        # The diff is for reading only; a CR would be shown as a control character.
        shown.append(line.removesuffix(b"\r").decode(errors="replace"))
    return "\n".join(shown)


def _regions(data: bytes, changes: list[Change]) -> list[Region]:
    """Extend the changes to whole lines; changes in the same line form one region."""
    spans: list[tuple[int, int, list[Change]]] = []
    for change in changes:
        if spans and change.start < spans[-1][1]:
            start, end, together = spans.pop()
        else:
            start, end, together = data.rfind(b"\n", 0, change.start) + 1, 0, []
        if change.end >= end:  # the end of a line is searched only once, however many changes it has
            end = data.find(b"\n", change.end) + 1 or len(data)
        together.append(change)
        spans.append((start, end, together))
    line, counted = 0, 0
    regions: list[Region] = []
    for span in spans:
        line += data.count(b"\n", counted, span[0])
        counted = span[0]
        regions.append(_region(data, span, line))
    return regions


def _region(data: bytes, span: tuple[int, int, list[Change]], line: int) -> Region:
    start, end, changes = span
    pieces: list[bytes] = []
    position = start
    for change in changes:
        pieces += [data[position : change.start], change.new]
        position = change.end
    old = _lines(data[start:end])
    new = _lines(b"".join([*pieces, data[position:end]]))
    # Equal lines at both ends are context, not part of the change.
    before = _common(old, new)
    after = _common(old[before:][::-1], new[before:][::-1])
    start += sum(map(len, old[:before]))
    end -= sum(map(len, old[len(old) - after :]))
    return Region(start, end, line + before, old[before : len(old) - after], new[before : len(new) - after])


def _common(old: list[bytes], new: list[bytes]) -> int:
    """Return the number of equal lines at the beginning."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _diff_lines(data: bytes, regions: list[Region]) -> Iterator[bytes]:
    """Yield the lines of all hunks, without newlines."""
    shift = 0
    for hunk in _hunks(data, regions):
        lead = _lines_before(data, hunk[0].start)
        body = [b" " + line for line in lead]
        for region, following in zip(hunk, [*hunk[1:], None], strict=True):
            body += [b"-" + line for line in region.old] + [b"+" + line for line in region.new]
            rest = _lines(data[region.end : following.start]) if following else _lines_after(data, region.end)
            body += [b" " + line for line in rest]
        removed, added = sum(len(region.old) for region in hunk), sum(len(region.new) for region in hunk)
        same = len(body) - removed - added
        first = hunk[0].line - len(lead)
        yield f"@@ -{_range(first, same + removed)} +{_range(first + shift, same + added)} @@".encode()
        # Line numbers of the new file differ by the lines added and removed so far.
        shift += added - removed
        for line in body:
            yield line.removesuffix(b"\n")
            if not line.endswith(b"\n"):
                yield b"\\ No newline at end of file"


def _hunks(data: bytes, regions: list[Region]) -> Iterator[list[Region]]:
    """Group regions whose context lines would touch."""
    hunk: list[Region] = []
    for region in regions:
        if hunk and data.count(b"\n", hunk[-1].end, region.start) > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(region)
    yield hunk


def _range(first: int, count: int) -> str:
    """Format a range of lines, counted from 1; an empty one names the line before it, as in diff(1)."""
    return f"{first + (count > 0)},{count}"


def _lines_before(data: bytes, place: int) -> list[bytes]:
    start = place
    for _ in range(CONTEXT_LINES):
        if start:
            start = data.rfind(b"\n", 0, start - 1) + 1
    return _lines(data[start:place])


def _lines_after(data: bytes, place: int) -> list[bytes]:
    end = place
    for _ in range(CONTEXT_LINES):
        end = data.find(b"\n", end) + 1 or len(data)
    return _lines(data[place:end])


def _lines(data: bytes) -> list[bytes]:
    """Split after each LF. bytes.splitlines would also split at a lone CR."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)
