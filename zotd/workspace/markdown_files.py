"""Finds Markdown files in directories such as `.zot/commands`, and reads one. Everything here blocks: use a thread."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from zotd import front_matter
from zotd.front_matter import FrontMatter
from zotd.sanitize import blanked
from zotd.workspace.context import ContextPaths

MAX_BYTES = 256 * 1024
"""Largest file. It is a prompt, and longer texts are documents that it should name."""

MAX_FILES, MAX_ENTRIES, MAX_DEPTH = 500, 5_000, 8
"""Most files of one place, most entries of its directories that are looked at, and how deep these may be nested."""


class MarkdownFileError(Exception):
    """The file cannot be used; the message is one sentence, which names it."""


class FilePlace(Struct, frozen=True):
    """A directory with such files."""

    directory: Path
    label: str
    """What people are told instead of the path, such as `.claude/commands`."""
    within: Path | None = None
    """A project's files are only read if they are in the project; None: they are the user's and may be anywhere."""


class NamedFile(Protocol):
    """What one file defines."""

    @property
    def name(self) -> str:
        """What people and models call it."""
        ...

    @property
    def path(self) -> Path:
        """The file."""
        ...


Named = TypeVar("Named", bound=NamedFile)


class PlaceWalk:
    """Goes through the directories of one place."""

    def __init__(self, place: FilePlace, problems: dict[Path, str]) -> None:
        """`problems` gets what is left out."""
        self._top = place.directory
        self._problems = problems
        self._looked = 0

    def files(self) -> Iterator[Path]:
        """Yield the files, sorted within each directory."""
        for count, path in enumerate(self._below(self._top, 1)):
            if count >= MAX_FILES:
                self._problems[self._top] = f"{self._top} has more than {MAX_FILES} files; the rest is left out"
                return
            yield path

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        for entry in self._entries(folder):
            if entry.name.startswith("."):
                continue
            if not _is_directory(entry):
                if entry.name.endswith(".md"):
                    yield Path(entry.path)
            elif self._is_entered(entry, depth):
                yield from self._below(Path(entry.path), depth + 1)

    def _entries(self, folder: Path) -> "list[os.DirEntry[str]]":
        try:
            with os.scandir(folder) as entries:
                found = list(islice(entries, MAX_ENTRIES - self._looked + 1))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self._problems[folder] = f"{folder} cannot be read: {(error.strerror or str(error)).lower()}"
            return []
        self._looked += len(found)
        if self._looked > MAX_ENTRIES:
            self._problems[folder] = (
                f"{self._top} has more than {MAX_ENTRIES:,} entries; those of {folder} are left out"
            )
            return []
        return sorted(found, key=lambda entry: entry.name)

    def _is_entered(self, entry: "os.DirEntry[str]", depth: int) -> bool:
        path = Path(entry.path)
        if entry.is_symlink():
            self._problems[path] = f"{path} is a link to a directory, which is not followed"
            return False
        if depth >= MAX_DEPTH:
            self._problems[path] = f"{path} is nested more than {MAX_DEPTH} deep and is left out"
            return False
        return True


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself; reading it tells so
        return False


def places_of(paths: ContextPaths, folder: str, *, claude: bool) -> list[FilePlace]:
    """Return where a session's files of this kind are: its project's if that is trusted, then the user's.

    Args:
        paths: of the session.
        folder: the name of the directories, such as `commands`.
        claude: also those that the user has for Claude Code.
    """
    own = [FilePlace(paths.home / folder, f"$ZOT_HOME/{folder}")]
    if claude:
        own.append(FilePlace(paths.user / ".claude" / folder, f"~/.claude/{folder}"))
    # A session may work in the user's home directory.
    users = {os.path.realpath(path) for path in (paths.home, paths.user / ".claude")}
    dots = [name for name in (".zot", ".claude") if os.path.realpath(paths.cwd / name) not in users]
    project = [FilePlace(paths.cwd / dot / folder, f"{dot}/{folder}", within=paths.cwd) for dot in dots]
    return [*(project if paths.trusted else ()), *own]


def first_of_each_name(
    places: Iterable[FilePlace], problems: dict[Path, str], read: Callable[[FilePlace, Path], Named]
) -> dict[str, Named]:
    """Return what `read` makes of the files of these places, by name; of one name the first counts.

    `read` raises MarkdownFileError; why a file or directory is not used comes to `problems`.
    """
    found: dict[str, Named] = {}
    for place in places:
        for path in PlaceWalk(place, problems).files():
            try:
                one = read(place, path)
            except MarkdownFileError as error:
                problems[path] = str(error)
                continue
            first = found.setdefault(one.name, one)
            if first is not one:
                problems[path] = f"{path} is hidden by {first.path}, which has the same name"
    return found


def version_of(path: Path) -> Sequence[int]:
    """Return what changes with the file, as part of a key under which it is kept. Raises MarkdownFileError."""
    try:
        found = path.stat()
    except OSError as error:
        raise MarkdownFileError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def is_inside(path: Path, top: Path) -> bool:
    """Whether the path leads to something below `top`, links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))


def source_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        MarkdownFileError: it cannot be read, is no file, too large or no text.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MarkdownFileError(f"{path} is not used: it is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise MarkdownFileError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_BYTES:
        raise MarkdownFileError(f"{path} is not used: it is over {MAX_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise MarkdownFileError(f"{path} is not used: it is not UTF-8") from error


def fields_of(path: Path) -> FrontMatter:
    """Return the fields and the text of a file, which need not have fields.

    Raises:
        MarkdownFileError: it cannot be read, is no file, too large or no text, or its fields cannot be read.
    """
    source = source_of(path)
    if not re.match(r"---[ \t]*(?:\n|\Z)", source):
        return FrontMatter({}, text=source)
    parsed = front_matter.parse(source)
    if parsed is None:
        raise MarkdownFileError(f"{path} is not used: the fields at its beginning have no closing --- line")
    if parsed.unread:
        raise MarkdownFileError(
            f'{path} is not used: "{blanked(parsed.unread[0])[:80]}" is no field such as "name: value"'
        )
    return parsed
