"""The tool `glob`: finds files by name."""

import re
import threading
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import (
    BadGlobError,
    BuiltinTool,
    DirectoryWalk,
    ToolError,
    check_root,
    glob_matcher,
    in_thread,
    is_hidden,
    resolve,
    shown_path,
    text_outcome,
)

MATCHES = 500
"""Limit of paths in a result. More would not help: the pattern is too wide."""


class GlobArgs(msgspec.Struct, frozen=True):
    """Arguments of `glob`."""

    pattern: Annotated[str, Meta(description="For example **/*.py or src/*.{ts,tsx}; ** matches any directories")]
    path: Annotated[str, Meta(description="Directory to look in; default: the working directory")] = "."
    hidden: Annotated[bool, Meta(description="Also find names that begin with a dot")] = False


async def _glob(args: GlobArgs, context: ToolContext) -> ToolOutcome:
    base, pattern = _split(args.pattern)
    root = resolve(args.path, context) / base
    try:
        matches = glob_matcher(pattern)
    except BadGlobError as error:
        raise ToolError(str(error)) from error
    # A pattern that names a hidden file is meant to find it.
    hidden = args.hidden or any(part.startswith(".") for part in pattern.split("/"))

    def find(abandoned: threading.Event) -> tuple[list[Path], bool]:
        if not root.is_dir():
            raise ToolError(f"{root} is not a directory; give the path of one")
        check_root(root, context.jail)
        tree = DirectoryWalk(root, hidden=hidden, abandoned=abandoned)
        found: list[Path] = []
        for path in tree:
            if matches(path) and not is_hidden(root / path, context.jail):
                found.append(root / path)
            # One more than is shown, to know whether there are more.
            if len(found) > MATCHES:
                break
        return found, tree.cut

    found, is_cut = await in_thread(find)
    lines = [shown_path(path, context) for path in found[:MATCHES]]
    if len(found) > MATCHES:
        lines.append(f"[only the first {MATCHES} matches; use a narrower pattern or path]")
    elif is_cut:
        lines.append("[the directory is too large to be searched whole; use a narrower path]")
    return text_outcome("\n".join(lines) or "no files match")


TOOL = BuiltinTool(
    GlobArgs,
    _glob,
    name="glob",
    description=(
        "Find files by the pattern of their path. Leaves out what .gitignore names, and hidden files. "
        f"Gives at most {MATCHES} paths, sorted."
    ),
    parallel=True,
    replay=Replay.SAFE,
)


def _split(pattern: str) -> tuple[str, str]:
    """Split off the leading folders without wildcards, so that only these have to be walked."""
    parts = pattern.split("/")
    plain = next((i for i, part in enumerate(parts[:-1]) if re.search(r"[*?\[{]", part)), len(parts) - 1)
    return "/".join(parts[:plain]) + "/" * (plain == 1 and not parts[0]), "/".join(parts[plain:])
