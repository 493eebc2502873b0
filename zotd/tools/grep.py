"""The tool `grep`: finds lines by content, with ripgrep or, if that is missing, with `search.py` beside this module.

Both run as a child that prints `path NUL line-number : line`. It is killed as soon as there are enough matches.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Meta, Struct

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.process import spawn
from zotd.tools.shared import (
    TEXT_BYTES,
    BadGlobError,
    BuiltinTool,
    DirectoryWalk,
    ToolError,
    check_root,
    glob_matcher,
    in_thread,
    is_hidden,
    is_secret,
    open_regular,
    repository_of,
    resolve,
    shown_path,
    text_outcome,
)
from zotd.wire.framing import Lines, TooLong

MATCHES = 200
"""Limit of lines in a result."""

LINE_CHARS = 400
"""Longest excerpt of a line; generated code has very long lines."""

OUTPUT_LINE_BYTES = 64 * 1024
"""Longest accepted line of the child, whose own limit is much lower."""

SEARCH_S = 60
"""Time limit. A longer search is in the wrong place, or its regular expression backtracks without end."""

_FROM_FOLDER = 'cd -- "$1" || exit 3; shift; exec "$@"'
"""A jail may start its commands in the session's directory, whatever directory they are given."""

SEARCH_PROGRAM = Path(__file__).with_name("search.py")


class GrepArgs(msgspec.Struct, frozen=True, rename={"ignore_case": "ignoreCase"}):
    """Arguments of `grep`."""

    pattern: Annotated[str, Meta(min_length=1, description="Regular expression; a match lies within one line")]
    path: Annotated[str, Meta(description="File or directory to search; default: the working directory")] = "."
    glob: Annotated[str, Meta(description="Only files that match, for example *.py or src/**/*.ts")] = ""
    ignore_case: Annotated[bool, Meta(description="Treat upper and lower case alike")] = False


class SearchRoot(Struct, frozen=True):
    """Where to search: all of `folder`, or only the file `name` in it."""

    folder: Path
    in_repository: bool
    name: str = ""


class Matches:
    """Parses the child's output and keeps the lines that the result shows."""

    def __init__(self, is_wanted: Callable[[str], bool], show: Callable[[str], str]) -> None:
        """Filter and format paths with these functions; both get them relative to the child's directory."""
        self.lines: list[str] = []
        self.message = ""
        """Other output of the child, such as the error in the pattern."""
        self.is_full = False
        self._is_wanted = is_wanted
        self._show = show
        self._framing = Lines(OUTPUT_LINE_BYTES)
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Parse a chunk of output; ignored once `is_full`."""
        for line in self._framing.feed(data):
            if not isinstance(line, TooLong) and not self.is_full:
                self._take(line)

    def text(self, *, is_cut: bool) -> str:
        """Return the result; `is_cut` says that not every file was searched."""
        lines = list(self.lines)
        if self.is_full:
            lines.append(f"[only the first {len(lines)} matches; use a narrower pattern, path or glob]")
        elif is_cut:
            lines.append("[the directory is too large to be searched whole; use a narrower path]")
        return "\n".join(lines) or "no matches"

    def _take(self, line: bytes) -> None:
        raw_path, found, rest = line.partition(b"\0")
        # Every match contains a NUL; other lines are error messages of the child.
        if not found:
            self.message = (self.message + " " + line.decode(errors="replace"))[:LINE_CHARS]
            return
        # ripgrep repeats the `./` of the path that it was given; `search.py` does not.
        path = os.fsdecode(raw_path).removeprefix("./")
        if not self._is_wanted(path):
            return
        number, _, text = rest.decode(errors="replace").rstrip("\r").partition(":")
        shown = f"{self._show(path)}:{number}:{text[:LINE_CHARS]}{'…' if len(text) > LINE_CHARS else ''}"
        self._size += len(shown.encode(errors="replace")) + 1
        self.is_full = len(self.lines) == MATCHES or self._size > TEXT_BYTES
        if not self.is_full:
            self.lines.append(shown)


async def _grep(args: GrepArgs, context: ToolContext) -> ToolOutcome:
    place = await in_thread(lambda _: _place(resolve(args.path, context), context))
    is_wanted = _filter(args.glob, place)
    matches = Matches(
        lambda path: is_wanted(path) and not _is_secret(place.folder / path, context),
        lambda path: shown_path(place.folder / path, context),
    )
    ripgrep = shutil.which("rg", path=context.env.get("PATH"))
    is_cut = False
    if ripgrep:
        command = _ripgrep(ripgrep, args, place)
        code = await _run(command, place.folder, context, stdin=subprocess.DEVNULL, matches=matches)
    else:
        # A file rather than a pipe: a full pipe would block the thread that lists the tree.
        with tempfile.TemporaryFile() as names:
            is_cut = await in_thread(lambda abandoned: _list(place, names, abandoned))
            code = await _run(_search(args), place.folder, context, stdin=names.fileno(), matches=matches)
    # Exit code 1 means no match. 2 without a message means that ripgrep could not read some file, which is no error here.
    if matches.lines or code in {0, 1} or (code == 2 and not matches.message):
        return text_outcome(matches.text(is_cut=is_cut))
    raise ToolError(f"the search failed ({code}): {' '.join(matches.message.split())}")


TOOL = BuiltinTool(
    GrepArgs,
    _grep,
    name="grep",
    description=(
        "Search the content of files with a regular expression. Leaves out binary and hidden files and what .gitignore "
        f"names. Gives at most {MATCHES} lines as path:line:text."
    ),
    parallel=True,
    replay=Replay.SAFE,
)


def _place(path: Path, context: ToolContext) -> SearchRoot:
    if path.is_dir():
        check_root(path, context.jail)
        return SearchRoot(path, in_repository=repository_of(path) is not None)
    # Only for its checks; the child opens the file itself.
    open_regular(path, context.home, context.jail).close()
    # `search.py` does not follow links, so a link that the model named is resolved here.
    real = path.resolve(strict=True)
    return SearchRoot(real.parent, False, real.name)


def _is_secret(path: Path, context: ToolContext) -> bool:
    """Return True if lines of this file must not be shown, whatever name or link leads to it."""
    try:
        found = path.stat()
    except OSError:
        return False
    return is_secret(found, context.home) or is_hidden(path, context.jail)


def _filter(glob: str, place: SearchRoot) -> Callable[[str], bool]:
    """Return the filter for paths. A glob without a slash matches names in any folder; a single file needs no glob."""
    if place.name or not glob:
        return lambda _: True
    try:
        return glob_matcher(glob if "/" in glob else f"**/{glob}")
    except BadGlobError as error:
        raise ToolError(str(error)) from error


def _ripgrep(program: str, args: GrepArgs, place: SearchRoot) -> list[str]:
    """Return a command that finds the same lines as `search.py`.

    `--glob` is not used, because it includes files that `.gitignore` excludes. Sorting restricts ripgrep to one thread,
    but if there are too many matches, it gives the same ones each time.
    """
    # Only `.gitignore` files count, as in `search.py` and the other tools.
    ignoring = ["--no-require-git", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global"]
    if not place.in_repository:
        ignoring.append("--no-ignore-parent")
    shape = ["--null", "--line-number", "--with-filename", "--no-heading", "--color=never", "--sort=path"]
    case = "--ignore-case" if args.ignore_case else "--case-sensitive"
    # Independent of the user's ripgrep configuration, so that results do not differ between machines.
    options = ["--no-config", "--no-messages", f"--max-columns={LINE_CHARS * 4}", "--max-columns-preview", case]
    return [
        str(Path(program).absolute()),
        *options,
        *ignoring,
        *shape,
        f"--regexp={args.pattern}",
        "--",
        f"./{place.name}",
    ]


def _search(args: GrepArgs) -> list[str]:
    case = "-i" if args.ignore_case else "-s"
    # -I -S: the environment and the working directory cannot add code, and the start is fast.
    return [sys.executable, "-I", "-S", "-X", "utf8", "-W", "ignore", str(SEARCH_PROGRAM), case, args.pattern]


def _list(place: SearchRoot, names: IO[bytes], abandoned: threading.Event) -> bool:
    """Write the paths to search, each ended by a NUL; return True if there were too many."""
    if place.name:
        names.write(os.fsencode(place.name))
        is_cut = False
    else:
        tree = DirectoryWalk(place.folder, hidden=False, abandoned=abandoned)
        names.writelines(os.fsencode(path) + b"\0" for path in tree)
        is_cut = tree.cut
    names.seek(0)
    return is_cut


async def _run(command: list[str], folder: Path, context: ToolContext, *, stdin: int, matches: Matches) -> int:
    def on_output(data: bytes) -> None:
        matches.feed(data)
        if matches.is_full:
            # Enough matches: the rest of the search would be wasted.
            child.signal_group(signal.SIGKILL)

    try:
        # In the jail, too: a file that is read is opened long after any check of ours.
        argv = command if context.jail is None else ["/bin/sh", "-c", _FROM_FOLDER, "sh", str(folder), *command]
        child = spawn(argv, cwd=str(folder), env=context.env, on_output=on_output, stdin=stdin, jail=context.jail)
        async with asyncio.timeout(SEARCH_S), child:
            return await child.wait()
    except TimeoutError as error:
        raise ToolError(
            f"the search took longer than {SEARCH_S} s; use a simpler pattern or a narrower path"
        ) from error
    except ValueError as error:
        raise ToolError("the pattern contains a NUL, which text files do not have") from error
