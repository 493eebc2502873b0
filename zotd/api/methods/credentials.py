"""Commands about the vendors' API keys and logins. No key and no token appears in a response, an error or a log line."""

import asyncio
from contextlib import suppress

from msgspec import structs

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import session_of
from zotd.logins.desk import LoginRun
from zotd.oauth.protocol import OAuthError
from zotd.sessions import credentials
from zotd.wire import auth
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

WAIT_S = 25.0
"""Longest wait of one `auth.wait`: clients give up a command that takes longer than 30 s."""


async def listing(call: Invocation, params: auth.AuthScope) -> auth.KeyList:
    """List the vendors and where the key of each comes from."""
    environment = await _environment(call, params.session)
    models = call.manager.models
    vendors = models.catalog.vendors()
    return auth.KeyList([credentials.key_info(models, vendor.name, environment) for vendor in vendors])


async def check(call: Invocation, params: auth.CheckKey) -> auth.KeyCheck:
    """Check whether a vendor accepts a key, without storing it."""
    return await credentials.check_key(call.manager.models, params.provider, params.api_key)


async def login(call: Invocation, params: auth.Login) -> auth.KeyInfo:
    """Store a key; sessions without one use it from their next prompt on."""
    await asyncio.to_thread(credentials.log_in, call.manager.models, params.provider, params.api_key)
    return credentials.key_info(call.manager.models, params.provider, await _environment(call))


async def logout(call: Invocation, params: auth.Logout) -> auth.KeyInfo:
    """Remove a stored key and a login; the response says which source is used instead."""
    note = await asyncio.to_thread(credentials.log_out, call.manager.models, params.provider)
    info = credentials.key_info(call.manager.models, params.provider, await _environment(call))
    return structs.replace(info, note=note)


async def begin(call: Invocation, params: auth.LoginBegin) -> auth.LoginBegun:
    """Begin a login by subscription; its user has to open a page."""
    title, vendor = credentials.login_vendor(call.manager.models, params.provider)
    method = params.method or vendor.methods[0]
    if method not in vendor.methods:
        ways = " or ".join(vendor.methods)
        raise CommandError(Code.BAD_REQUEST, f'{title} has no login by "{method}"; use {ways}')
    try:
        prompt = await call.manager.models.logins.begin(vendor, method)
    except OAuthError as error:
        raise CommandError(Code.BLOCKED, f"the login to {title} cannot begin: {error}") from error
    return auth.LoginBegun(prompt.id, title, prompt.method, prompt.url, prompt.full_url, prompt.code, prompt.lifetime_s)


async def wait(call: Invocation, params: auth.LoginWait) -> auth.LoginOutcome:
    """Wait for the end of a login, at most `WAIT_S`."""
    run = _run(call, params.login)
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, min(params.wait_s, WAIT_S))):
            await run.ended.wait()
    if not run.ended.is_set():
        return auth.LoginOutcome("pending", "")
    return auth.LoginOutcome("failed" if run.failure else "done", run.failure)


async def cancel(call: Invocation, params: auth.LoginCancel) -> None:
    """Cancel a login; one that has ended stays as it is."""
    run = _run(call, params.login)
    if not run.ended.is_set():
        run.cancel()
        await run.ended.wait()


def _run(call: Invocation, login: str) -> LoginRun:
    run = call.manager.models.logins.run(login)
    if run is None:
        raise CommandError(Code.NOT_FOUND, "this login has ended; begin it again")
    return run


async def _environment(call: Invocation, session_id: str | None = None) -> Environment:
    if session_id:
        return (await session_of(call, session_id)).environment
    return call.manager.environment(None, None)
