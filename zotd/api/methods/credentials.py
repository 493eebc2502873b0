"""Commands about the vendors' keys. What they are given goes into `auth.json`, and into no answer, error or log line."""

import asyncio

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import session_of
from zotd.wire import auth
from zotd.workspace.environment import Environment


async def listing(call: Invocation, params: auth.AuthScope) -> auth.KeyList:
    """Where each vendor's key comes from."""
    environment = await _environment(call, params.session)
    models = call.manager.models
    return auth.KeyList([models.key_info(vendor.name, environment) for vendor in models.catalog.vendors()])


async def check(call: Invocation, params: auth.CheckKey) -> auth.KeyCheck:
    """Whether a vendor takes a key; nothing is stored."""
    return await call.manager.models.check_key(params.provider, params.api_key)


async def login(call: Invocation, params: auth.Login) -> auth.KeyInfo:
    """Store a key; sessions that had none use it with their next prompt."""
    await asyncio.to_thread(call.manager.models.log_in, params.provider, params.api_key)
    return call.manager.models.key_info(params.provider, await _environment(call))


async def logout(call: Invocation, params: auth.Logout) -> auth.KeyInfo:
    """Forget a stored key; the answer says which one is used instead."""
    await asyncio.to_thread(call.manager.models.log_out, params.provider)
    return call.manager.models.key_info(params.provider, await _environment(call))


async def _environment(call: Invocation, session_id: str | None = None) -> Environment:
    if session_id:
        return (await session_of(call, session_id)).environment
    return call.manager.environment(None, None)
