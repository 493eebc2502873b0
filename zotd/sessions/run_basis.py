"""What the runs of a session depend on: a run whose basis is that of the run before takes over what follows from it."""

import asyncio
import hashlib
from typing import NamedTuple

from zotd.config import Config
from zotd.contributions.view import Extensions
from zotd.core import prompts, records
from zotd.permissions.rules import WorkspaceRules
from zotd.runs.context import RunContext
from zotd.tools.skill import find_skills
from zotd.wire.base import ENCODER
from zotd.workspace import context
from zotd.workspace.context import ContextPaths, WorkspaceContext
from zotd.workspace.environment import Environment

READ_S = 5.0
"""Longest wait for AGENTS.md and skills; local files take a millisecond, a dead network mount for ever."""


class WorkspaceFiles(NamedTuple):
    """What the files of the workspace and of the user say."""

    context: WorkspaceContext
    skills: list[prompts.SkillLine]
    digest: bytes
    """Of the two: sessions keep it, and not the texts, to notice a change."""


class RunBasis(NamedTuple):
    """Everything that the runs of a session depend on, but for its transcript and the model's key."""

    settings: records.Settings
    environment: Environment
    config: Config
    extensions: Extensions | None
    revision: int
    """`Extensions.revision`."""
    paths: ContextPaths
    files: bytes
    """`WorkspaceFiles.digest`."""
    ground: WorkspaceRules


class PreparedRun(NamedTuple):
    """What the last run of a session worked with; the next one takes it over if its basis is the same."""

    basis: RunBasis
    context: RunContext


async def read_files(paths: ContextPaths) -> WorkspaceFiles:
    """Return the surroundings and the skills; without them when the disk does not answer."""
    try:
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(_read_now, paths)
    except TimeoutError:
        note = f"the instructions around {paths.cwd} could not be read within {READ_S:g} s and are left out"
        return WorkspaceFiles(WorkspaceContext(None, (), (note,)), [], b"")


def _read_now(paths: ContextPaths) -> WorkspaceFiles:
    skills = [prompts.SkillLine(skill.name, skill.description) for skill in find_skills(paths.skill_dirs())]
    found = context.read(paths)
    return WorkspaceFiles(found, skills, hashlib.blake2b(ENCODER.encode([found, skills]), digest_size=16).digest())
