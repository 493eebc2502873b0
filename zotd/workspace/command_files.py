"""Slash commands as Markdown files: finds them in their places, and reads one. Everything here blocks: use a thread.

commands/fix.md              /fix
commands/frontend/test.md    /frontend:test
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from zotd.core.allowed_tools import not_understood
from zotd.core.command_text import SHELL_RUN
from zotd.front_matter import split_outside
from zotd.sanitize import blanked, is_harmless
from zotd.workspace.markdown_files import (
    MAX_DEPTH,
    FilePlace,
    MarkdownFileError,
    PlaceWalk,
    fields_of,
    first_of_each_name,
    is_inside,
    source_of,
    version_of,
)

COMMANDS = "commands"
"""Name of the directories with commands."""

DESCRIPTION_CHARS = 200

_PART = re.compile(r"[^\s/:.`][^\s/:`]{0,63}")
"""What a file or directory may be called to be a part of a name that can be typed."""

_USED = frozenset({"description", "argument-hint", "allowed-tools"})
_ALWAYS_SO = frozenset({"disable-model-invocation", "hide-from-slash-command-tool", "user-invocable"})
"""Fields that say what holds for each command here: only people use them."""

_NARROWING = frozenset({"disallowed-tools", "hooks", "permission-mode"})
"""Fields that would narrow what a command may do, and cannot be kept."""


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


class FoundCommands(Struct, frozen=True):
    """The commands of several places."""

    commands: dict[str, FileCommand]
    problems: dict[Path, str]
    """Why a file or directory is not used: a sentence that names it."""


def find_commands(places: Sequence[FilePlace]) -> FoundCommands:
    """Find the commands of these places. Of one name the first counts."""
    problems: dict[Path, str] = {}
    return FoundCommands(first_of_each_name(places, problems, _listed), problems)


def read_command(places: Sequence[FilePlace], name: str) -> FileCommand | None:
    """Return the command with this name as its file says now; None: there is none.

    Raises:
        MarkdownFileError: its file cannot be used.
    """
    found = _place_of(places, name)
    if found is None:
        return None
    place, path = found
    if any(folder.is_symlink() for folder in list(path.parents)[: name.count(":")]):
        raise MarkdownFileError(f"{path} is not used: a directory above it is a link")
    return _read(place, path)


def path_of(places: Sequence[FilePlace], name: str) -> Path | None:
    """Return the file that a command of this name would be read from; None: there is none."""
    found = _place_of(places, name)
    return None if found is None else found[1]


def shell_runs(directory: Path) -> list[tuple[Path, str]]:
    """Return the shell commands that the files of a project's directory would have run, each with its file."""
    place = FilePlace(directory, "")
    return [
        (path, found[1].strip())
        for path in PlaceWalk(place, {}).files()
        if (source := _source_or_none(path)) is not None
        for found in SHELL_RUN.finditer(source)
    ]


def _place_of(places: Sequence[FilePlace], name: str) -> tuple[FilePlace, Path] | None:
    parts = name.split(":")
    if len(parts) > MAX_DEPTH or not all(map(_PART.fullmatch, parts)):
        return None
    paths = ((place, place.directory.joinpath(*parts[:-1], f"{parts[-1]}.md")) for place in places)
    return next(((place, path) for place, path in paths if os.path.lexists(path)), None)


def _listed(place: FilePlace, path: Path) -> FileCommand:
    """Read a file once for each version of it: lists of commands are shown often."""
    return _read_version(place, path, version_of(path))


@lru_cache(maxsize=512)
def _read_version(place: FilePlace, path: Path, version: Sequence[int]) -> FileCommand:
    del version  # part of the key
    return _read(place, path)


# --- reading -----------------------------------------------------------------------------------------------------


def _read(place: FilePlace, path: Path) -> FileCommand:
    parts = path.relative_to(place.directory).with_suffix("").parts
    if not all(map(_PART.fullmatch, parts)) or not is_harmless("".join(parts)):
        raise MarkdownFileError(f"{path} is not used: its name cannot be typed as a command")
    if place.within is not None and not is_inside(path, place.within):
        raise MarkdownFileError(f"{path} is not used: it leads out of {place.within}")
    fields = fields_of(path)
    text = fields.text
    values = {_plain(name): value for name, value in fields.values.items()}
    lists = {_plain(name): value for name, value in fields.lists.items()}
    if narrowing := sorted(_NARROWING & values.keys()):
        raise MarkdownFileError(f"{path} is not used: zot cannot keep what its {narrowing[0]} demands")
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


def _source_or_none(path: Path) -> str | None:
    try:
        return source_of(path)
    except MarkdownFileError:
        return None
