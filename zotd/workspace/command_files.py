"""Slash commands as Markdown files: finds them in their places, and reads one. Everything here blocks: use a thread.

commands/fix.md              /fix
commands/frontend/test.md    /frontend:test
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from msgspec import Struct, field

from zotd import front_matter
from zotd.core.allowed_tools import not_understood
from zotd.core.command_text import SHELL_RUN
from zotd.front_matter import FrontMatter, split_outside
from zotd.sanitize import blanked, is_harmless
from zotd.workspace.context import ContextPaths

COMMANDS = "commands"
"""Name of the directories with commands."""

MAX_BYTES = 256 * 1024
"""Largest file. A command is a prompt, and longer ones are documents that it should name."""

MAX_FILES, MAX_ENTRIES, MAX_DEPTH = 500, 5_000, 8
"""Most commands of one place, most entries of its directories that are looked at, and how deep these may be nested."""

DESCRIPTION_CHARS = 200

_PART = re.compile(r"[^\s/:.`][^\s/:`]{0,63}")
"""What a file or directory may be called to be a part of a name that can be typed."""

_USED = frozenset({"description", "argument-hint", "allowed-tools"})
_ALWAYS_SO = frozenset({"disable-model-invocation", "hide-from-slash-command-tool", "user-invocable"})
"""Fields that say what holds for each command here: only people use them."""

_NARROWING = frozenset({"disallowed-tools", "hooks", "permission-mode"})
"""Fields that would narrow what a command may do, and cannot be kept."""


class CommandFileError(Exception):
    """The file is no usable command; the message is one sentence, which names it."""


class CommandPlace(Struct, frozen=True):
    """A directory with commands."""

    directory: Path
    label: str
    """What people are told instead of the path, such as `.claude/commands`."""
    within: Path | None = None
    """A project's files are only read if they are in the project; None: they are the user's and may be anywhere."""


class FileCommand(Struct, frozen=True):
    """A command, as its file says now."""

    name: str
    """As typed, without the slash."""
    path: Path
    label: str
    description: str
    """One line; the first one of the text if the file has none."""
    hint: str
    """What arguments it takes, for people; empty: unknown."""
    text: str
    allowed_tools: Sequence[str] | None
    """Entries of `core.allowed_tools`; None: it may do what its session may."""
    is_project_s: bool = False
    """It is the project's and not the user's."""
    remarks: Sequence[str] = ()
    """What the file says that has no effect, as sentences for people."""


class FoundCommands(Struct):
    """The commands of several places."""

    commands: dict[str, FileCommand] = field(default_factory=dict)
    problems: dict[Path, str] = field(default_factory=dict)
    """Why a file or directory is not used: a sentence that names it."""


def find_commands(places: Sequence[CommandPlace]) -> FoundCommands:
    """Find the commands of these places. Of one name the first counts."""
    found = FoundCommands()
    files = ((place, path) for place in places for path in _Walk(place, found.problems).files())
    for place, path in files:
        try:
            command = _listed(place, path)
        except CommandFileError as error:
            found.problems[path] = str(error)
            continue
        first = found.commands.setdefault(command.name, command)
        if first is not command:
            found.problems[path] = f"{path} is hidden by {first.path}, which has the same name"
    return found


def read_command(places: Sequence[CommandPlace], name: str) -> FileCommand | None:
    """Return the command with this name as its file says now; None: there is none.

    Raises:
        CommandFileError: its file cannot be used.
    """
    found = _place_of(places, name)
    if found is None:
        return None
    place, path = found
    if any(folder.is_symlink() for folder in list(path.parents)[: name.count(":")]):
        raise CommandFileError(f"{path} is not used: a directory above it is a link")
    return _read(place, path)


def path_of(places: Sequence[CommandPlace], name: str) -> Path | None:
    """Return the file that a command of this name would be read from; None: there is none."""
    found = _place_of(places, name)
    return None if found is None else found[1]


def places_of(paths: ContextPaths, *, claude: bool) -> list[CommandPlace]:
    """Return where a session's commands are: its project's if that is trusted, then the user's.

    `claude`: also the user's commands of Claude Code.
    """
    own = [CommandPlace(paths.home / COMMANDS, "$ZOT_HOME/commands")]
    if claude:
        own.append(CommandPlace(paths.user / ".claude" / COMMANDS, "~/.claude/commands"))
    # A session may work in the user's home directory.
    users = {os.path.realpath(path) for path in (paths.home, paths.user / ".claude")}
    dots = [name for name in (".zot", ".claude") if os.path.realpath(paths.cwd / name) not in users]
    project = [CommandPlace(paths.cwd / dot / COMMANDS, f"{dot}/{COMMANDS}", within=paths.cwd) for dot in dots]
    return [*(project if paths.trusted else ()), *own]


def shell_runs(directory: Path) -> list[tuple[Path, str]]:
    """Return the shell commands that the files of a project's directory would have run, each with its file."""
    place = CommandPlace(directory, "")
    return [
        (path, found[1].strip())
        for path in _Walk(place, {}).files()
        if (source := _source_or_none(path)) is not None
        for found in SHELL_RUN.finditer(source)
    ]


def _place_of(places: Sequence[CommandPlace], name: str) -> tuple[CommandPlace, Path] | None:
    parts = name.split(":")
    if len(parts) > MAX_DEPTH or not all(map(_PART.fullmatch, parts)):
        return None
    paths = ((place, place.directory.joinpath(*parts[:-1], f"{parts[-1]}.md")) for place in places)
    return next(((place, path) for place, path in paths if os.path.lexists(path)), None)


# --- looking -----------------------------------------------------------------------------------------------------


class _Walk:
    """Goes through the directories of one place."""

    def __init__(self, place: CommandPlace, problems: dict[Path, str]) -> None:
        """`problems` gets what is left out."""
        self._top = place.directory
        self._problems = problems
        self._looked = 0

    def files(self) -> Iterator[Path]:
        """Yield the files, sorted within each directory."""
        for count, path in enumerate(self._below(self._top, 1)):
            if count >= MAX_FILES:
                self._problems[self._top] = f"{self._top} has more than {MAX_FILES} commands; the rest is left out"
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


def _listed(place: CommandPlace, path: Path) -> FileCommand:
    """Read a file once for each version of it: lists of commands are shown often."""
    try:
        found = path.stat()
    except OSError as error:
        raise CommandFileError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    return _read_version(place, path, (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size))


@lru_cache(maxsize=512)
def _read_version(place: CommandPlace, path: Path, version: tuple[int, ...]) -> FileCommand:
    del version  # part of the key
    return _read(place, path)


# --- reading -----------------------------------------------------------------------------------------------------


def _read(place: CommandPlace, path: Path) -> FileCommand:
    parts = path.relative_to(place.directory).with_suffix("").parts
    if not all(map(_PART.fullmatch, parts)) or not is_harmless("".join(parts)):
        raise CommandFileError(f"{path} is not used: its name cannot be typed as a command")
    if place.within is not None and not _is_inside(path, place.within):
        raise CommandFileError(f"{path} is not used: it leads out of {place.within}")
    source = _source(path)
    fields, text = FrontMatter({}), source
    if re.match(r"---[ \t]*(?:\n|\Z)", source):
        parsed = front_matter.parse(source)
        if parsed is None:
            raise CommandFileError(f"{path} is not used: the fields at its beginning have no closing --- line")
        fields, text = parsed, parsed.text
    if fields.unread:
        raise CommandFileError(
            f'{path} is not used: "{blanked(fields.unread[0])[:80]}" is no field such as "name: value"'
        )
    values = {_plain(name): value for name, value in fields.values.items()}
    lists = {_plain(name): value for name, value in fields.lists.items()}
    if narrowing := sorted(_NARROWING & values.keys()):
        raise CommandFileError(f"{path} is not used: zot cannot keep what its {narrowing[0]} demands")
    allowed = _allowed(values, lists)
    first = next((line for line in text.splitlines() if line.strip()), "")
    description = values.get("description") or first.lstrip("# ")
    return FileCommand(
        name=":".join(parts),
        path=path,
        label=place.label,
        description=blanked(" ".join(description.split()))[:DESCRIPTION_CHARS],
        hint=blanked(_hint(values, lists))[:DESCRIPTION_CHARS],
        text=text,
        allowed_tools=allowed,
        is_project_s=place.within is not None,
        remarks=_remarks(path, values, allowed),
    )


def _plain(name: str) -> str:
    """`allowedTools` and `allowed_tools` are meant to narrow as well, so no spelling of it may get lost."""
    letters = re.sub(r"[-_]", "", name).casefold()
    known = (*_USED, *_ALWAYS_SO, *_NARROWING)
    return next((one for one in known if one.replace("-", "") == letters), name)


def _allowed(values: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
    if "allowed-tools" not in values:
        return None
    items = lists.get("allowed-tools")
    if items is None:
        items = split_outside(values["allowed-tools"], ", \t\n")
    return tuple(item.strip() for item in items if item.strip())


def _hint(values: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> str:
    """`argument-hint: [file]` is a list in YAML, and meant as it is written."""
    return " ".join(f"[{item}]" for item in lists.get("argument-hint", ())) or values.get("argument-hint", "")


def _remarks(path: Path, values: Mapping[str, str], allowed: Sequence[str] | None) -> tuple[str, ...]:
    unused = [name for name in values if name not in _USED | _ALWAYS_SO]
    found = [f"{path}: {', '.join(unused)[:DESCRIPTION_CHARS]} has no effect in zot"] if unused else []
    if strange := not_understood(allowed or ()):
        named = ", ".join(strange)[:DESCRIPTION_CHARS]
        found.append(f"{path}: zot does not know what {named} in allowed-tools means, and allows nothing because of it")
    return tuple(found)


def _is_inside(path: Path, top: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))


def _source_or_none(path: Path) -> str | None:
    try:
        return _source(path)
    except CommandFileError:
        return None


def _source(path: Path) -> str:
    """Return the text of a file.

    Raises:
        CommandFileError: it cannot be read, is no file, too large or no text.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise CommandFileError(f"{path} is not used: it is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandFileError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_BYTES:
        raise CommandFileError(f"{path} is not used: it is over {MAX_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise CommandFileError(f"{path} is not used: it is not UTF-8") from error
