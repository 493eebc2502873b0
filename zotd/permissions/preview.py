"""What a call is about, found out before it runs: what people are shown of it, and which files it leads to.

Both look at files, in a thread and not for long, and neither ever fails.
"""

import asyncio
import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from msgspec import Struct

from zotd.core.permissions import SHELL
from zotd.tools import edit
from zotd.tools.shared import ToolError, locate, open_regular
from zotd.wire.base import BadFrameError, convert
from zotd.wire.plan import PlanStep, step_lines

LOOK_S = 2.0
"""Longest wait for the file system: a local one answers in a millisecond, a dead network mount never."""

PREVIEW_CHARS = 16_000
"""Longest preview: some 400 lines. It is in a record, an event and every snapshot while the question is open."""

COMPARED_BYTES = 1024 * 1024
"""Largest file that is compared with what would replace it."""

COMPARED_LINES = 1_000
"""Longest changed part that is compared line by line, which takes a quadratic time; longer ones are shown as replaced."""

_PATTERNS = {"glob": "pattern", "grep": "glob"}
"""Our tools that look for something below their path, and the argument that says what."""

_PATHLESS = frozenset({SHELL, "plan", "skill", "find_tools", "job_output", "job_wait", "job_stop", "wake_later"})
"""Our tools without a path argument, whatever a model puts into a call of them."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, or change how others are shown."""


class Paths(Struct, frozen=True):
    """What a call leads to; see `permissions.PermissionQuery`."""

    spellings: Sequence[str] = ()
    is_resolved: bool = True
    real: Sequence[str] = ()
    """The real paths among them, without links."""


async def paths_of(
    tool: str, extension: str | None, args: Mapping[str, object], cwd: str, *, home: str | None = None
) -> Paths:
    """Every spelling of the call's path argument that a rule may mean.

    `home`: HOME of the environment that the tool runs in, which `~` stands for there; None: it stands for nothing.
    """
    targets = _targets(tool, extension, args)
    if not targets:
        return Paths()
    try:
        async with asyncio.timeout(LOOK_S):
            return await asyncio.to_thread(_resolved, targets, cwd, home)
    except (TimeoutError, OSError, ValueError):  # a link that leads to itself, a name that no file can have
        return Paths(is_resolved=False)


async def preview_of(
    tool: str, extension: str | None, args: Mapping[str, object], cwd: str, *, home: str | None = None
) -> str:
    """What the call would do, for people: a diff, a command line, else the arguments; cut, and said so, when too long.

    Nothing in it steers a terminal or hides: characters that show nothing stand there as their codes.
    """
    if extension is None and tool == SHELL and isinstance(args.get("command"), str):
        return _shown(_command(args))
    if extension is None and tool == "plan" and (steps := _plan(args)):
        return _shown(steps)
    look = _LOOKS.get(tool) if extension is None else None
    path = args.get("path")
    if look is None or not isinstance(path, str) or not path or "\0" in path:
        return _shown(_as_json(args))
    try:
        async with asyncio.timeout(LOOK_S):
            return _shown(await asyncio.to_thread(look, locate(path, cwd=cwd, home=home), args))
    except TimeoutError:
        reason = f"{path} did not answer within {LOOK_S:g} s"
    except OSError as error:
        reason = f"{path}: {(error.strerror or str(error)).lower()}"
    except (ToolError, BadFrameError, ValueError) as error:
        reason = str(error)
    return _shown(f"(no diff: {reason})\n{_as_json(args)}")


# --- paths ------------------------------------------------------------------------------------------------------------


def _targets(tool: str, extension: str | None, args: Mapping[str, object]) -> Sequence[str]:
    """The path argument, and where a search below it may go."""
    is_search = extension is None and tool in _PATTERNS
    path = args.get("path")
    if path is None and is_search:
        path = "."
    if not isinstance(path, str) or not path or "\0" in path or (extension is None and tool in _PATHLESS):
        return ()
    pattern = args.get(_PATTERNS[tool]) if is_search else None
    if not isinstance(pattern, str) or not pattern or "\0" in pattern:
        return (path,)
    return path, os.path.join(path, pattern)  # noqa: PTH118  (text, not yet a path: `~` is to be replaced first)


def _resolved(targets: Sequence[str], cwd: str, home: str | None) -> Paths:
    """Blocks."""
    bases = list(dict.fromkeys([cwd, os.path.realpath(cwd)]))
    homes = list(dict.fromkeys([home, os.path.realpath(home)])) if home else []
    found: dict[str, None] = {}
    real: list[str] = []
    for target in targets:
        located = os.fspath(locate(target, cwd=cwd, home=home))
        real.append(os.path.realpath(located))
        for path in (os.path.normpath(located), real[-1]):
            whole = "/" + path.lstrip("/")  # POSIX lets a path begin with two slashes
            found[whole] = None
            found.update((os.path.relpath(whole, base), None) for base in bases)
            found.update((f"~{whole[len(one) :]}", None) for one in homes if whole.startswith(f"{one}/"))
    return Paths(list(found), real=real)


# --- previews ---------------------------------------------------------------------------------------------------------


def _command(args: Mapping[str, object]) -> str:
    others = {name: value for name, value in args.items() if name != "command" and value is not None}
    return "\n".join([str(args["command"]), *([f"({_as_json(others)})"] if others else [])])


def _plan(args: Mapping[str, object]) -> str:
    """Return a line for each step; empty if the arguments are none of a plan."""
    try:
        return "\n".join(step_lines(convert(args.get("steps"), list[PlanStep])))
    except BadFrameError:
        return ""


def _written(path: Path, args: Mapping[str, object]) -> str:
    """What `write` would change. Blocks."""
    name, content = str(args["path"]), args.get("content")
    if not isinstance(content, str):
        raise ToolError("it has no content to write")
    new = content.encode()
    try:
        with open_regular(path) as file:
            old = file.read(COMPARED_BYTES + 1)
    except FileNotFoundError:
        return _listed(f"new file {name} ({len(new):,} bytes)", content)
    if old == new:
        return f"{name} stays as it is"
    if len(old) > COMPARED_BYTES or len(new) > COMPARED_BYTES:
        return _listed(f"{name} is replaced; too long to be compared ({len(new):,} bytes)", content)
    if b"\0" in old:
        return _listed(f"{name}, which is no text, is replaced ({len(new):,} bytes)", content)
    return edit.unified_diff(old, _changes(old, new), name)


_LOOKS = {"write": _written, "edit": edit.diff_of}


def _listed(head: str, content: str) -> str:
    return "\n+".join([head, *content.removesuffix("\n").split("\n")])


def _changes(old: bytes, new: bytes) -> list[edit.Change]:
    """How to make `new` of `old`, by whole lines, in the order of the file."""
    ours, theirs = old.splitlines(keepends=True), new.splitlines(keepends=True)
    first = _common(ours, theirs)
    last = _common(ours[first:][::-1], theirs[first:][::-1])
    start = sum(map(len, ours[:first]))
    ours, theirs = ours[first : len(ours) - last], theirs[first : len(theirs) - last]
    offsets = list(accumulate(map(len, ours), initial=start))
    if max(len(ours), len(theirs)) > COMPARED_LINES:
        return [edit.Change(start, offsets[-1], b"".join(theirs), number=1)]
    import difflib  # noqa: PLC0415  (a third of a MiB, when the first change of a file is shown)

    compared = difflib.SequenceMatcher(None, ours, theirs).get_opcodes()
    return [
        edit.Change(offsets[a], offsets[b], b"".join(theirs[c:d]), number)
        for number, (kind, a, b, c, d) in enumerate(compared, 1)
        if kind != "equal"
    ]


def _common(ours: Sequence[bytes], theirs: Sequence[bytes]) -> int:
    pairs = zip(ours, theirs, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))


def _as_json(args: Mapping[str, object]) -> str:
    return json.dumps(args, indent=2, ensure_ascii=False)


def _shown(text: str) -> str:
    """Return the part of the text that a preview shows, with invisible characters made visible."""
    rest = len(text) - PREVIEW_CHARS
    shown = visible(text[:PREVIEW_CHARS])
    return f"{shown}\n[{rest:,} more characters are not shown]" if rest > 0 else shown


def visible(text: str) -> str:
    """Return the text with characters that show nothing, or steer a terminal, as their codes."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
