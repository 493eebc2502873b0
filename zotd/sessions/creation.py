"""Creates sessions as clients order them."""

import asyncio

from zotd import ids
from zotd.clock import rfc3339
from zotd.contributions.discovery import check_named
from zotd.core.ports import SessionRow
from zotd.sessions.defaults import check_directory, new_settings
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.wire.api import SessionCreate


async def create_session(manager: Manager, params: SessionCreate, user: str = "") -> Session:
    """A new session of this user; when something about it is wrong, a CommandError comes out and nothing is made."""
    await asyncio.to_thread(check_directory, params.cwd)
    await check_named(params.extensions or ())
    environment = manager.environment(params.env, params.secrets.api_key if params.secrets else None)
    settings = new_settings(params, environment, manager.models, manager.config.value)
    now = rfc3339()
    row = SessionRow(ids.new("s"), params.name or "", params.cwd, now, now, settings, "idle", user=user)
    session = await manager.begin(row, environment, ephemeral=params.ephemeral, discards=params.discard_unused)
    if not settings.agent:
        await manager.recent_models.remember(settings)
    return session
