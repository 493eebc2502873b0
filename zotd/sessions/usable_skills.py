"""The skills that the model of a session may use."""

import asyncio
import logging
from contextlib import suppress

from zotd.contributions.toolbox import choose
from zotd.sessions.planner import READ_S, Planner
from zotd.sessions.session import Session
from zotd.tools.skill import Skill, find_skills

log = logging.getLogger(__name__)


async def usable_skills(planner: Planner, session: Session) -> list[Skill]:
    """Return them by name; none when the disk does not answer, or the session has no tool to read them."""
    if "skill" not in choose(session.ledger.row.settings).tools:
        return []
    dirs = (await planner.paths(session)).skill_dirs()
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(find_skills, dirs, log.debug)
    return []
