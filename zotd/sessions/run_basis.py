"""What the runs of a session depend on: a run whose basis is that of the run before takes over what follows from it."""

import hashlib
import os
from typing import NamedTuple

from zotd.config import Config
from zotd.contributions.toolbox import Toolbox
from zotd.contributions.view import Extensions
from zotd.core import prompts, records
from zotd.core.ports import SessionRow
from zotd.permissions.rules import WorkspaceRules
from zotd.runs.context import RunContext
from zotd.tools.skill import find_skills
from zotd.wire.base import ENCODER
from zotd.workspace import context
from zotd.workspace.context import ContextPaths, WorkspaceContext
from zotd.workspace.environment import Environment


class WorkspaceFiles(NamedTuple):
    """What the files of the workspace and of the user say."""

    context: WorkspaceContext
    skills: list[prompts.SkillLine]
    digest: bytes
    """Of them all: sessions keep it, and not the texts, to notice a change."""
    agents: list[tuple[str, str]]
    """The names and descriptions of agent types."""


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


def read_files(paths: ContextPaths) -> WorkspaceFiles:
    """Return the surroundings, the skills and the agent types. Blocks for as long as the disk does."""
    skills = [prompts.SkillLine(skill.name, skill.description) for skill in find_skills(paths.skill_dirs())]
    found = context.read(paths)
    agents: list[tuple[str, str]] = []
    if any(map(os.path.isdir, paths.agent_dirs)):
        from zotd.workspace.agent_files import agent_places, find_agents  # noqa: PLC0415  (few directories have any)

        types = find_agents(agent_places(paths)).types
        agents = [(name, types[name].description) for name in sorted(types)]
    digest = hashlib.blake2b(ENCODER.encode([found, skills, agents]), digest_size=16).digest()
    return WorkspaceFiles(found, skills, digest, agents)


def prompt_parts(row: SessionRow, basis: RunBasis, files: WorkspaceFiles, tools: Toolbox) -> prompts.PromptParts:
    """Return what the system prompt of a session with these tools consists of."""
    settings, extensions, surroundings = basis.settings, basis.extensions, files.context
    return prompts.PromptParts(
        cwd=row.cwd,
        date=row.created[:10],
        base=settings.system_prompt if settings.system_prompt is not None else surroundings.system,
        appended=settings.append_system_prompt,
        context_files=surroundings.context_files,
        skills=files.skills if "skill" in tools.tools else (),
        extensions=extensions.offers.instructions() if extensions is not None and tools.tools else (),
    )
