"""Commands about the vendors' API keys. Keys are stored in `auth.json` and appear in no response, error or log line."""

import asyncio

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import session_of
from zotd.wire import auth
from zotd.workspace.environment import Environment


async def listing(call: Invocation, params: auth.AuthScope) -> auth.KeyList:
    """List the vendors and where the key of each comes from."""
    environment = await _environment(call, params.session)
    models = call.manager.models
    return auth.KeyList([models.key_info(vendor.name, environment) for vendor in models.catalog.vendors()])


async def check(call: Invocation, params: auth.CheckKey) -> auth.KeyCheck:
    """Check whether a vendor accepts a key, without storing it."""
    return await call.manager.models.check_key(params.provider, params.api_key)


async def login(call: Invocation, params: auth.Login) -> auth.KeyInfo:
    """Store a key; sessions without one use it from their next prompt on."""
    await asyncio.to_thread(call.manager.models.log_in, params.provider, params.api_key)
    return call.manager.models.key_info(params.provider, await _environment(call))


async def logout(call: Invocation, params: auth.Logout) -> auth.KeyInfo:
    """Remove a stored key; the response says which source is used instead."""
    await asyncio.to_thread(call.manager.models.log_out, params.provider)
    return call.manager.models.key_info(params.provider, await _environment(call))


async def _environment(call: Invocation, session_id: str | None = None) -> Environment:
    if session_id:
        return (await session_of(call, session_id)).environment
    return call.manager.environment(None, None)
