"""Commands about sessions: create, find, attach, configure, close and delete."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from zotd.api.bringing import check_is_missed, checked, environment_of, may_bring_code
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import (
    ENVELOPE_BYTES,
    check_may_set,
    check_reasoning,
    checked_name,
    connection_of,
    named,
    session_of,
    switched,
    wait_for_room,
)
from zotd.contributions.discovery import check_named
from zotd.contributions.toolbox import check as check_tools
from zotd.core.lineage import Span, events_left
from zotd.core.ports import StorageError
from zotd.core.records import Settings
from zotd.ledger.spending import check_budget
from zotd.sessions.agent_settings import check_wishes
from zotd.sessions.creation import create_session
from zotd.sessions.defaults import check_mode, check_steps
from zotd.sessions.info import questions_of
from zotd.sessions.run_models import checked_fallback
from zotd.sessions.session import Session
from zotd.store.errors import UnreadableSessionError
from zotd.store.families import sessions_below
from zotd.store.queries import PageQuery
from zotd.wire import api, events
from zotd.wire.base import encode
from zotd.wire.content import Message, ToolResult
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import SERVER_LIMIT
from zotd.wire.mcp import McpServer, checked_servers
from zotd.workspace.environment import Environment

MAX_PAGE = 500

"""Maximum number of sessions or messages in one response."""

MAX_SERVERS = 64
"""Most MCP servers that a client may bring into a session; each is a process."""

SETTLE_S = 1.0
"""Longest wait for a commit in `attach`. On a disk that takes longer, the client gets a snapshot."""

_CURSOR = re.compile(r"\d{4}-\d\d-\d\dT\S+ \S+")
"""End of a page of sessions: the `updated` time of the last one, and its id."""


async def create(call: Invocation, params: api.SessionCreate) -> api.Created:
    """Create a session."""
    if params.reasoning is not None:
        check_reasoning(params.reasoning)
    if params.mode is not None:
        check_mode(params.mode)
        check_may_set(call, params.mode, call.manager.config.value.approval.mode)
    if params.agent is not None:
        _check_may_have_agent(call, params.agent)
    if params.name is not None:
        params = msgspec.structs.replace(params, name=checked_name(params.name))
    params = checked(call, params)
    session = await create_session(call.manager, params, call.user)
    if session.ephemeral:
        connection_of(call).made(session)
    return api.Created(call.manager.info(session), 0, session.ledger.journal.epoch)


async def listing(call: Invocation, params: api.SessionList) -> api.Sessions:
    """Return a page of sessions, newest first."""
    if params.cursor is not None and _CURSOR.fullmatch(params.cursor) is None:
        raise CommandError(Code.BAD_REQUEST, "the cursor is not one that session.list returned; leave it out to begin")
    limit = max(1, min(params.limit, MAX_PAGE))
    wanted = PageQuery(
        cwd=params.cwd,
        state=params.state,
        before=params.cursor,
        limit=limit,
        subagents=params.subagents,
        user=params.user,
    )
    infos, cursor = await call.manager.page(wanted)
    await wait_for_room(call)
    bounds = call.door.confinement
    return api.Sessions([info for info in infos if bounds is None or bounds.sees(info.id)], cursor)


async def get(call: Invocation, params: api.OfSession) -> api.SessionInfo:
    """Return a session by its id, the beginning of its id, or its name."""
    found = await call.manager.find(named(params.session))
    if not found:
        raise CommandError(Code.NOT_FOUND, f'no session "{params.session}"; `zotctl sessions` lists them')
    if len(found) > 1:
        names = ", ".join(info.id for info in found[:5])
        raise CommandError(Code.CONFLICT, f'"{params.session}" is not unique; it could be {names}')
    return found[0]


async def family(call: Invocation, params: api.OfSession) -> api.Sessions:
    """Return a session and its subagents, each before those below it; of a large family the first `MAX_PAGE`."""
    top = await get(call, params)
    found: list[api.SessionInfo] = []
    left = [top]
    while left and len(found) < MAX_PAGE:
        found.append(left.pop())
        rows = [] if call.manager.journal is None else await sessions_below(call.manager.journal, found[-1].id)
        for row in reversed(rows):
            left += await call.manager.find(row.id)
    await wait_for_room(call)
    bounds = call.door.confinement
    return api.Sessions([info for info in found if bounds is None or bounds.sees(info.id)])


async def history(call: Invocation, params: api.History) -> api.HistoryPage:
    """Return messages before `before`, of the current conversation or of the one that ended at message `at`."""
    session = await session_of(call, params.session)
    before = None if params.before is None else max(params.before, 0)
    left = session.ledger.row.abandoned
    if params.at is not None:
        before = params.at + 1 if before is None else min(before, params.at + 1)
        rewinds = await session.ledger.journal.history.rewinds(session.id) if left else []
        left = events_left(rewind for rewind in rewinds if rewind.seq <= params.at)
    messages, has_more = await _page(session, before, params.limit, left)
    await wait_for_room(call)
    return api.HistoryPage(messages, has_more)


async def attach(call: Invocation, params: api.Attach) -> None:
    """Attach: send a snapshot, or confirm the cursor; then missed events, then live ones."""
    if params.after is not None and params.after.seq < 0:
        raise CommandError(Code.BAD_REQUEST, f"no event has the seq {params.after.seq}; use 0 for the beginning")
    session = await session_of(call, params.session)
    connection = connection_of(call)
    if params.env is not None and may_bring_code(call):
        session.use_environment(environment_of(call, session, params.env))
    call.manager.extension_pool.join(session)
    call.manager.models.warm(session.ledger.row.settings.provider)  # a user who attaches is likely to prompt
    limit = await _holds_to(session, params.after)
    if session.ledger.is_ahead:  # a cursor may be of that event, and what follows it must not come first
        await _settle(session)
    # No await between registering the follower and reading `shown_seq`, or an event could be missed or sent twice.
    follower = connection.follow(session)
    seq = session.ledger.shown_seq
    answer = _snapshot(call, session, seq)
    reason = _why_not(params.after, limit, seq)
    if params.after is not None and reason is None:
        cursor = params.after.seq
        call.respond(msgspec.structs.replace(answer, mode="resumed"))
    else:
        cursor = seq
        messages, has_more = await _newest(session, seq + 1, params.limit)
        if session.ledger.damage is not None:
            answer = msgspec.structs.replace(answer, session=call.manager.info(session))
        if len(encode(answer)) + len(encode(messages)) > SERVER_LIMIT - ENVELOPE_BYTES:
            messages, has_more = [], True  # the client can get them with `session.history`
        await wait_for_room(call)
        call.respond(msgspec.structs.replace(answer, messages=messages, has_more=has_more, reason=reason))
    await follower.catch_up(cursor)


async def detach(call: Invocation, params: api.OfSession) -> None:
    """Detach from the session."""
    connection_of(call).unfollow(named(params.session))


async def mcp_servers(call: Invocation, params: api.McpServers) -> api.McpServersTaken:
    """Run MCP servers of the client for the session, for as long as the client is connected."""
    if not may_bring_code(call):
        sentence = "starting MCP servers from another machine requires the role approve; ask for it in hello"
        raise CommandError(Code.FORBIDDEN, sentence)
    if len(params.servers) > MAX_SERVERS:
        raise CommandError(Code.BAD_REQUEST, f"a client may bring {MAX_SERVERS} MCP servers, not {len(params.servers)}")
    session, connection, pool = await session_of(call, params.session), connection_of(call), call.manager.extension_pool
    found = checked_servers(params.servers)
    servers = {name: one for name, one in found.items() if isinstance(one, McpServer)}
    was_known = pool.client_servers.knows(session.id, connection.id)
    await pool.client_servers.bring(session, connection.id, servers)
    if not was_known:
        connection.at_end(lambda: pool.client_servers.left(session.id, connection.id))
    pool.join(session)  # a session that wants no extensions has none before
    faults = {name: one for name, one in found.items() if not isinstance(one, McpServer)}
    return api.McpServersTaken([f'the MCP server "{name[:80]}" is not used: {one}' for name, one in faults.items()])


async def rename(call: Invocation, params: api.Rename) -> None:
    """Rename a session."""
    session = await session_of(call, params.session)
    await _configure(call, session, session.ledger.row.settings, checked_name(params.name))


async def configure(call: Invocation, params: api.SessionConfigure) -> None:
    """Change the given settings; keep the others."""
    session = await session_of(call, params.session)
    params = checked(call, params)
    if params.secrets is not None and params.secrets.given_for is not None:
        check_is_missed(session, params.secrets.given_for)
    environment = session.environment if params.env is None else environment_of(call, session, params.env)
    if params.secrets is not None:
        env = {**environment.variables, **environment.keys}
        environment = call.manager.environment(env, params.secrets.api_key)
    if params.extensions is not None and params.extensions != session.ledger.row.settings.extensions:
        await check_named(params.extensions)
    settings, environment = _settings(call, session, params, environment)
    await _configure(call, session, settings, checked_name(params.name) if params.name else session.ledger.row.name)
    session.use_environment(environment)


async def close(call: Invocation, params: api.Mutation) -> None:
    """Unload a session; its transcript stays, unless it is ephemeral."""
    session = await session_of(call, params.session)
    call.respond()
    await call.manager.close(session)


async def delete(call: Invocation, params: api.Mutation) -> None:
    """Delete a session for good."""
    session = await session_of(call, params.session)
    await call.manager.delete(session)


def _check_may_have_agent(call: Invocation, agent: str) -> None:
    """Raise CommandError if the client may not approve calls: the agent itself decides about which of its calls it asks."""
    if call.door.role < api.Role.APPROVE or call.door.confinement is not None:
        sentence = f"a session that {agent} runs requires the role approve: the agent itself decides what it asks about"
        raise CommandError(Code.FORBIDDEN, sentence)


def _settings(
    call: Invocation, session: Session, params: api.SessionConfigure, environment: Environment
) -> tuple[Settings, Environment]:
    """Return the changed settings, and the environment that belongs to them."""
    if params.reasoning is not None:
        check_reasoning(params.reasoning)
    if params.mode is not None:
        check_mode(params.mode)
        check_may_set(call, params.mode, session.ledger.row.settings.mode)
    check_steps(params.max_steps)
    check_budget(params.budget_usd, params.budget_tokens)
    settings = session.ledger.row.settings
    check_wishes(settings, params)
    models = call.manager.models
    if params.provider is not None or params.model is not None:
        provider, model = models.choose(params.provider or settings.provider, params.model, environment)
        if provider != settings.provider and params.secrets is None:
            environment = environment.without_own_key()
        settings, _ = switched(session, provider, model)
    if params.base_url not in {None, settings.base_url} and params.secrets is None:
        environment = environment.without_own_key()  # the key was given for the previous destination
        settings = msgspec.structs.replace(settings, own_key=False)
    changes = {
        field: value
        for field in Settings.__struct_fields__
        if field not in {"provider", "model", "own_key", "planning", "agent", "agent_choices"}
        and (value := getattr(params, field)) is not None
    }
    if params.fallback is not None:
        changes["fallback"] = checked_fallback(params.fallback, settings, models)
    own_key = environment.api_key is not None or settings.own_key
    settings = msgspec.structs.replace(settings, own_key=own_key, **changes)
    if not settings.agent:
        models.check(settings, environment)
        check_tools(settings)
    return settings, environment


async def _configure(call: Invocation, session: Session, settings: Settings, name: str) -> None:
    changes = events.SessionChanged(
        session.state,
        name=name,
        provider=settings.provider,
        model=settings.model,
        reasoning=settings.reasoning,
        mode=settings.mode,
    )
    old = session.ledger.row.settings
    await session.configure(settings, name, accepted=lambda: call.respond(call.manager.info(session)), changes=changes)
    if not settings.agent:
        call.manager.models.warm(settings.provider)
    if (old.provider, old.model) != (settings.provider, settings.model):
        await call.manager.recent_models.remember(settings)
    if (old.extensions, old.no_ext) != (settings.extensions, settings.no_ext):
        call.manager.extension_pool.leave(session)
        call.manager.extension_pool.join(session)


def _snapshot(call: Invocation, session: Session, seq: int) -> api.Attached:
    ui_state = session.extensions.ui_state if session.extensions else None
    return api.Attached(
        mode="snapshot",
        session=call.manager.info(session),
        seq=seq,
        epoch=session.ledger.journal.epoch,
        usage=session.ledger.row.usage,
        queue=session.work.queue.items(),
        approvals=questions_of(session),
        panels=ui_state.panels if ui_state else [],
        status=ui_state.segments if ui_state else [],
        notes=list(ui_state.notes) if ui_state else [],
        run=session.work.run_info(),
        messages=[],
        has_more=False,
        held=session.state == "held",
        context=session.ledger.row.context,
        plan=session.plan.state.plan,
        planning=session.plan.state.planning,
        jobs=session.jobs.infos,
    )


async def _settle(session: Session) -> None:
    """Wait for the commit of an event that clients have got before it (`zotd.ledger`); `SETTLE_S` at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_S):
            await session.ledger.settled.wait()


async def _holds_to(session: Session, after: api.Cursor | None) -> int | None:
    """Return the last `seq` at which a cursor with this epoch can be resumed; None if it cannot."""
    if after is None:
        return None
    journal, shown = session.ledger.journal, session.ledger.shown_seq
    try:
        limit = await journal.history.holds_to(session.id, after.epoch)
    except StorageError:
        return None
    # A cursor from before a restart cannot include an event shown since then, not even one shown during the read above.
    return limit if limit is None or after.epoch == journal.epoch else min(limit, shown)


def _why_not(after: api.Cursor | None, limit: int | None, seq: int) -> str | None:
    """Return why a cursor cannot be resumed, or None if it can."""
    if after is None:
        return None
    if limit is None:
        return "epoch"
    if after.seq > seq:
        return "future"
    return "lost" if after.seq > limit else None


async def _page(session: Session, before: int | None, limit: int, left: Sequence[Span]) -> tuple[list[Message], bool]:
    """Return the newest messages below `before` that fit into a frame, and whether there are older ones."""
    wanted = max(1, min(limit, MAX_PAGE))
    lines = await session.ledger.journal.messages_before(session.id, before, wanted + 1, left)
    has_more = len(lines) > wanted
    lines = lines[-wanted:]
    room = SERVER_LIMIT // 2
    while len(lines) > 1 and sum(map(len, lines)) > room:
        del lines[0]
        has_more = True
    return [_message(line) for line in lines], has_more


async def _newest(session: Session, before: int, limit: int) -> tuple[list[Message], bool]:
    """Return a page for a snapshot; an empty one if it cannot be read, because attaching must work nevertheless."""
    try:
        return await _page(session, before, limit, session.ledger.row.abandoned)
    except UnreadableSessionError:
        return [], True


def _message(line: bytes) -> Message:
    """Convert a message event to a message of the history."""
    match events.DECODER.decode(line):
        case events.UserMessage(content=content, time=time, seq=seq, shell=shell):
            return Message("user", content, time, seq, shell)
        case events.AssistantMessage(content=content, time=time, seq=seq):
            return Message("assistant", content, time, seq)
        case events.ToolResultEvent(id=call_id, is_error=is_error, content=content, time=time, seq=seq):
            return Message("tool", [ToolResult(call_id, is_error, content)], time or "", seq)
        case other:
            raise AssertionError(f"{type(other).__name__} is no message")
