"""Agent types as Markdown files: finds them in their places. Everything here blocks: use a thread.

---
name: reviewer
description: Reviews a change for mistakes. Use it after larger edits.
tools: Read, Grep, Bash(git diff:*)
model: inherit
---
You review changes. ...
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from zotd.core.allowed_tools import not_understood
from zotd.front_matter import FrontMatter, split_outside
from zotd.sanitize import blanked, is_harmless
from zotd.workspace.context import ContextPaths
from zotd.workspace.markdown_files import (
    FilePlace,
    MarkdownFileError,
    fields_of,
    first_of_each_name,
    is_inside,
    places_of,
    version_of,
)

AGENTS = "agents"
"""Name of the directories with agent types."""

DESCRIPTION_CHARS = 500
"""The model reads it with each request."""

NAME_CHARS = 64

MODES = {"read-only": "read-only", "plan": "read-only", "ask": "ask", "workspace": "workspace"}
"""The values of `mode`, and of Claude Code's `permissionMode`, that can narrow what a subagent may do."""

OTHER_MODELS = frozenset({"inherit", "sonnet", "opus", "haiku", "fable"})
"""Claude Code's words for a model: they name none of a vendor here, so the subagent has its parent's."""

_NAME = re.compile(r"[^\s/:`,]+")
_USED = ("name", "description", "tools", "model", "mode", "permissionMode", "maxTurns")
_NARROWING = frozenset({"disallowedTools", "hooks"})
"""Fields that would narrow what a subagent may do, and cannot be kept."""


class AgentType(Struct, frozen=True):
    """A kind of subagent, as its file says."""

    name: str
    description: str
    """One line, for the model."""
    instructions: str
    path: Path
    label: str
    """Where it was found, such as `.zot/agents`."""
    tools: Sequence[str] | None = None
    """Entries of `core.allowed_tools`; None: those of the parent."""
    model: str = ""
    """Empty: that of the parent."""
    mode: str = ""
    """The most that it may do; empty: what its parent may."""
    max_steps: int | None = None
    is_project_s: bool = False
    remarks: Sequence[str] = ()
    """What the file says that has no effect, as sentences for people."""


class FoundAgents(Struct, frozen=True):
    """The agent types of several places."""

    types: dict[str, AgentType]
    problems: dict[Path, str]
    """Why a file or directory is not used: a sentence that names it."""


def find_agents(places: Iterable[FilePlace]) -> FoundAgents:
    """Find the types of these places. Of one name the first counts."""
    problems: dict[Path, str] = {}
    return FoundAgents(first_of_each_name(places, problems, _listed), problems)


def agent_places(paths: ContextPaths) -> list[FilePlace]:
    """Return where a session's agent types are: its project's if that is trusted, then the user's."""
    return places_of(paths, AGENTS, claude=paths.claude_agents)


def _listed(place: FilePlace, path: Path) -> AgentType:
    """Read a file once for each version of it, because types are looked for before every run."""
    return _read_version(place, path, version_of(path))


@lru_cache(maxsize=256)
def _read_version(place: FilePlace, path: Path, version: Sequence[int]) -> AgentType:
    del version  # part of the key
    if place.within is not None and not is_inside(path, place.within):
        raise MarkdownFileError(f"{path} is not used: it leads out of {place.within}")
    fields = fields_of(path)
    values = {_plain(name): value for name, value in fields.values.items()}
    if narrowing := sorted(_NARROWING & values.keys()):
        raise MarkdownFileError(f"{path} is not used: zot cannot keep what its {narrowing[0]} demands")
    name = values.get("name") or path.stem
    if not _NAME.fullmatch(name) or not is_harmless(name) or len(name) > NAME_CHARS:
        raise MarkdownFileError(f"{path} is not used: its name is no word of at most {NAME_CHARS} characters")
    description = blanked(" ".join(values.get("description", "").split()))[:DESCRIPTION_CHARS]
    if not description:
        raise MarkdownFileError(f"{path} is not used: it has no description, by which the model could choose it")
    model = values.get("model", "")
    tools = _entries(fields, values)
    return AgentType(
        name=name,
        description=description,
        instructions=fields.text.strip(),
        path=path,
        label=place.label,
        tools=tools,
        model="" if model in OTHER_MODELS else model,
        mode=_mode(path, values),
        max_steps=_steps(path, values),
        is_project_s=place.within is not None,
        remarks=_remarks(path, values, tools),
    )


def _plain(name: str) -> str:
    """Fields that narrow count in any spelling, such as `disallowed-tools`."""
    letters = re.sub(r"[-_]", "", name).casefold()
    return next((known for known in (*_USED, *_NARROWING) if known.casefold() == letters), name)


def _entries(fields: FrontMatter, values: Mapping[str, str]) -> Sequence[str] | None:
    if "tools" not in values:
        return None
    items = next((found for name, found in fields.lists.items() if _plain(name) == "tools"), None)
    if items is None:
        items = split_outside(values["tools"], ", \t\n")
    return tuple(item.strip() for item in items if item.strip())


def _mode(path: Path, values: Mapping[str, str]) -> str:
    if "mode" in values and values["mode"] not in MODES:
        raise MarkdownFileError(f"{path} is not used: mode must be {', '.join(sorted(set(MODES.values())))}")
    return MODES.get(values.get("mode", ""), "") or MODES.get(values.get("permissionMode", ""), "")


def _steps(path: Path, values: Mapping[str, str]) -> int | None:
    text = values.get("maxTurns", "")
    if text and (not text.isdecimal() or not int(text[:9])):
        raise MarkdownFileError(f"{path} is not used: its maxTurns is no number of at least 1")
    return int(text[:9]) if text else None


def _remarks(path: Path, values: Mapping[str, str], tools: Sequence[str] | None) -> tuple[str, ...]:
    unused = [name for name in values if name not in _USED]
    mode = values.get("permissionMode", "")
    if mode and mode not in MODES:
        unused.append(f"permissionMode {mode}")
    found = [f"{path}: {', '.join(unused)[:DESCRIPTION_CHARS]} has no effect in zot"] if unused else []
    if values.get("model") in OTHER_MODELS - {"inherit"}:
        found.append(
            f"{path}: the model {values['model']} is a word of Claude Code; the subagent has its parent's model"
        )
    if strange := not_understood(tools or ()):
        named = ", ".join(strange)[:DESCRIPTION_CHARS]
        found.append(f"{path}: zot does not know what {named} in tools means, and allows nothing because of it")
    return tuple(found)
