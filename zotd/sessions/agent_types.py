"""The agent types of a session, when a call of `task` names one."""

import asyncio
from collections import deque

from zotd.core import records
from zotd.core.allowed_tools import has_arguments, names_in
from zotd.sessions.planner import READ_S, Planner
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.errors import Code, CommandError
from zotd.workspace.agent_files import AgentType, agent_places, find_agents

MAX_SAID = 1_000
"""Remarks about files that are remembered, so that each is told once."""


class AgentTypes:
    """Of all sessions. The files are read when they are used."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._said: deque[str] = deque(maxlen=MAX_SAID)

    async def find(self, session: Session, name: str) -> AgentType:
        """Return the type with this name, as its file says now.

        Raises:
            CommandError: there is none, its file cannot be used, or the disk does not answer.
        """
        places = agent_places(await self._planner.paths(session))
        try:
            async with asyncio.timeout(READ_S):
                found = await asyncio.to_thread(find_agents, places)
        except TimeoutError as error:
            raise CommandError(Code.TIMEOUT, f"the agent types could not be read within {READ_S:g} s") from error
        kind = found.types.get(name)
        if kind is None:
            there = ", ".join(sorted(found.types)) or "none"
            reasons = [sentence for path, sentence in found.problems.items() if path.stem == name]
            raise CommandError(
                Code.NOT_FOUND,
                "; ".join([f'there is no agent type "{name[:80]}", the types here are: {there}', *reasons]),
            )
        for remark in kind.remarks:
            if remark not in self._said:
                self._said.append(remark)
                session.ledger.live([events.Notice("warn", remark, session=session.ledger.label)])
        return kind


def limit_by(kind: AgentType | None, above: records.AllowedTools | None) -> records.AllowedTools | None:
    """Return what a subagent of this type may call, if the tools in its settings do not say it all.

    `above`: what the run of its parent may call.
    """
    if kind is None or kind.tools is None or (names_in(kind.tools) is not None and not has_arguments(kind.tools)):
        return above
    return records.AllowedTools(kind.name, list(kind.tools), is_agent=True, above=above)
