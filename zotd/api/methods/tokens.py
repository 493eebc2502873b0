"""Commands about tokens of the WebSocket door. Only the response of `token.create` contains the token."""

import asyncio

from zotd.api.context import DoorStatus
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import role_named
from zotd.clock import rfc3339
from zotd.store.tokens import TakenError, Token, TokenStore, is_name
from zotd.user_names import WORDS, is_user_name
from zotd.wire import api
from zotd.wire.errors import Code, CommandError

MAX_SESSIONS = 64
"""Maximum number of sessions of a token; use a token for all sessions beyond that."""

MAX_LIFETIME_S = 10 * 365 * 24 * 3600
"""Longest lifetime; more is taken for a mistake."""


async def create(doors: DoorStatus, call: Invocation, params: api.TokenCreate) -> api.TokenMade:
    """Create a token."""
    if not is_name(params.name):
        raise CommandError(
            Code.BAD_REQUEST, "a token name must have 1 to 64 letters, digits, dots, dashes or underscores"
        )
    if params.expires_s is not None and not 1 <= params.expires_s <= MAX_LIFETIME_S:
        raise CommandError(Code.BAD_REQUEST, "a token must be valid for at least one second and at most ten years")
    if params.user is not None and not is_user_name(params.user):
        raise CommandError(Code.BAD_REQUEST, f"the name of a user must have {WORDS}")
    sessions = await _sessions(call, params)
    try:
        secret, token = await asyncio.to_thread(
            _tokens(doors).create,
            params.name,
            role_named(params.role),
            sessions=sessions,
            lifetime_s=params.expires_s,
            user=params.user or "",
        )
    except TakenError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error
    info = _info(params.name, token)
    return api.TokenMade(info.name, info.role, info.created, info.sessions, info.expires, user=info.user, token=secret)


async def listing(doors: DoorStatus, call: Invocation, params: api.Nothing) -> api.TokenList:
    """List all tokens, including expired ones."""
    del call, params
    found = await asyncio.to_thread(_tokens(doors).list)
    return api.TokenList([_info(name, token) for name, token in found.items()])


async def revoke(doors: DoorStatus, call: Invocation, params: api.TokenName) -> None:
    """Revoke a token. The response is sent first, because clients with this token are disconnected."""
    if not await asyncio.to_thread(_tokens(doors).revoke, params.name):
        raise CommandError(Code.NOT_FOUND, f'there is no token "{params.name}"; token.list names them')
    call.respond()
    doors.tokens_changed()


def _tokens(doors: DoorStatus) -> TokenStore:
    if doors.tokens is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon does not store tokens")
    return doors.tokens


async def _sessions(call: Invocation, params: api.TokenCreate) -> list[str]:
    """Return the ids of the sessions that the token is limited to, all of which have to exist."""
    named = list(dict.fromkeys([*filter(None, [params.session]), *params.sessions]))
    if len(named) > MAX_SESSIONS:
        raise CommandError(Code.BAD_REQUEST, f"a token can be limited to at most {MAX_SESSIONS} sessions")
    for session in named:
        # Not `get`, which would open the session here, although another daemon may have it.
        if session not in [found.id for found in await call.manager.find(session)]:
            raise CommandError(Code.NOT_FOUND, f'no session "{session}"; `zotctl sessions` lists them')
    return named


def _info(name: str, token: Token) -> api.TokenInfo:
    return api.TokenInfo(
        name,
        token.role,
        rfc3339(token.created),
        list(token.sessions),
        None if token.expires is None else rfc3339(token.expires),
        None if token.used is None else rfc3339(token.used),
        token.user,
    )
