"""The command about agent types."""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from zotd.api.dispatch import Invocation
from zotd.contributions.trust import WorkspaceTrust
from zotd.sanitize import escaped
from zotd.wire.errors import Code, CommandError
from zotd.wire.families import AgentInfo, Agents, AgentScope
from zotd.workspace.context import ContextPaths

READ_S = 5.0
"""Longest wait for files; local ones take a millisecond, a dead network mount for ever."""


async def listing(call: Invocation, params: AgentScope) -> Agents:
    """List the agent types that sessions in a directory have, and why other files are not used."""
    if not params.cwd.startswith("/") or "\0" in params.cwd:
        raise CommandError(Code.BAD_REQUEST, f'cwd must be an absolute path, not "{params.cwd}"')
    trusting = WorkspaceTrust(call.manager.extension_pool.trust, params.cwd)
    paths = call.manager.planner.paths_in(params.cwd)
    try:
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(_found, trusting, paths)
    except TimeoutError as error:
        raise CommandError(Code.TIMEOUT, f"the files could not be read within {READ_S:g} s") from error


def _found(trusting: WorkspaceTrust, paths: ContextPaths) -> Agents:
    from zotd.workspace.agent_files import agent_places, find_agents  # noqa: PLC0415  (few directories have any)

    trusting.look()
    found = find_agents(agent_places(replace(paths, trusted=trusting.is_granted)))
    problems = {str(path): sentence for path, sentence in found.problems.items()}
    if not trusting.is_granted:
        whole = find_agents(agent_places(paths))
        problems |= _untrusted([str(kind.path) for kind in whole.types.values() if kind.is_project_s], paths)
    infos = [
        AgentInfo(
            name=kind.name,
            description=kind.description,
            source=kind.label,
            path=str(kind.path),
            tools=None if kind.tools is None else list(kind.tools),
            model=kind.model,
            mode=kind.mode,
            remarks=list(kind.remarks),
        )
        for _, kind in sorted(found.types.items())
    ]
    return Agents(infos, [problems[path] for path in sorted(problems)])


def _untrusted(files: list[str], paths: ContextPaths) -> Mapping[str, str]:
    way = f"zotctl trust grant {escaped(str(paths.cwd))}"
    return {path: f"{path} is not trusted as it is now; look at it, then: {way}" for path in files}
