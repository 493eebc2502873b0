"""Skills: instructions in a `SKILL.md` that the model reads on demand. Finds skills, and defines the tool `skill`.

---
name: release          (default: the name of the directory)
description: How this project makes a release.
disable-model-invocation: true      (only people may invoke it)
---
Instructions, which may name files beside this one.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from zotd import front_matter
from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import TEXT_BYTES, BuiltinTool, ToolError, in_thread, open_regular, text_outcome

log = logging.getLogger(__name__)

FILE_BYTES = 256 * 1024
"""Largest `SKILL.md`; one result shows at most `TEXT_BYTES` of its instructions."""


class Skill(Struct, frozen=True):
    """A skill that the model may use."""

    name: str
    description: str
    """A single line."""
    path: str
    """Path of its `SKILL.md`, absolute if the directory given to `find_skills` was."""


class SkillArgs(msgspec.Struct, frozen=True):
    """Arguments of `skill`."""

    name: Annotated[str, Meta(description="Name of the skill, as the system prompt lists it")]


async def _skill(args: SkillArgs, context: ToolContext) -> ToolOutcome:
    return text_outcome(await in_thread(lambda _: _instructions(args.name, context.skill_dirs)))


TOOL = BuiltinTool(
    SkillArgs,
    _skill,
    name="skill",
    description="Read the instructions of a skill. Do so before you do work that a skill is for.",
    parallel=True,
    replay=Replay.SAFE,
)


def find_skills(dirs: Sequence[str], report: Callable[[str], None] = log.warning) -> list[Skill]:
    """Find the skills that the model may use, sorted by name. Blocks: call it in a thread.

    Looks for `SKILL.md` in each directory and in its subdirectories. If two skills have the same name, the first one in the
    order of `dirs` is used; one that is only for people hides later ones too. An invalid file is left out and described to
    `report`.
    """
    found: dict[str, Skill | None] = {}
    for path in _candidates(dirs):
        try:
            name, skill = _load(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except ToolError as error:
            report(str(error))
        except OSError as error:
            report(f"{path} cannot be read: {(error.strerror or '').lower()}")
        else:
            # None is stored too, so that a skill only for people hides later ones of the same name.
            found.setdefault(name, skill)
    return sorted((skill for skill in found.values() if skill), key=lambda skill: skill.name)


def _candidates(dirs: Sequence[str]) -> Iterator[str]:
    for folder in dirs:
        yield f"{folder}/SKILL.md"
        with suppress(OSError):  # most of the usual directories do not exist
            yield from (f"{folder}/{name}/SKILL.md" for name in sorted(os.listdir(folder)))  # noqa: PTH208  (before each run)


def _load(path: str) -> tuple[str, Skill | None]:
    """Return name and skill; None instead of a skill that is only for people."""
    found = os.stat(path)  # noqa: PTH116  (before each run, for each skill)
    return _parsed(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _parsed(path: str, mtime_ns: int, size: int) -> tuple[str, Skill | None]:
    """Parse a file once for each version of it, because skills are searched before every run."""
    del mtime_ns, size  # part of the key
    fields, _ = _parse(Path(path))
    name = fields.get("name") or Path(path).parent.name
    # On one line, because the system prompt lists each skill on a line.
    description = " ".join(fields.get("description", "").split())
    if not description:
        raise ToolError(f"{path} has no description; add one between its --- lines")
    if fields.get("disable-model-invocation", "").lower() == "true":
        return name, None
    return name, Skill(name, description, path)


def _instructions(name: str, dirs: Sequence[str]) -> str:
    problems: list[str] = []
    skills = {skill.name: skill for skill in find_skills(dirs, problems.append)}
    skill = skills.get(name)
    if skill is None:
        known = f"there are {', '.join(skills)}" if skills else "there is none"
        raise ToolError("; ".join([f"no skill is called {name}", known, *problems]))
    _, body = _parse(Path(skill.path))
    text = f"# Skill: {name}\n\nFiles that it names are in {Path(skill.path).parent}\n\n{body.strip()}\n"
    shown = text.encode()[:TEXT_BYTES].decode(errors="ignore")
    return text if shown == text else f"{shown}\n[there is more; read {skill.path}]"


# --- the file ---------------------------------------------------------------------------------------------------


def _parse(path: Path) -> tuple[Mapping[str, str], str]:
    """Return the fields between the `---` lines and the instructions.

    Raises:
        ToolError: the file is too large or has no such fields.
    """
    with open_regular(path) as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise ToolError(
            f"{path} has more than {FILE_BYTES:,} bytes; move parts of it into other files of its directory"
        )
    found = front_matter.parse(data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n"))
    if found is None:
        raise ToolError(f"{path} does not begin with fields between two --- lines; add name and description")
    return found.values, found.text
