"""Commands about the history of sessions: search, export, import, fork, rewind, undo and redo."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import ENVELOPE_BYTES, checked_name, loaded, place_of, session_of, wait_for_room
from zotd.history.export import page as export_page
from zotd.history.fork import fork as fork_at
from zotd.history.images import image_at
from zotd.history.past import past_at
from zotd.history.rewind import rewind as rewind_to
from zotd.history.rewind import rewind_with_files
from zotd.sessions import file_restores
from zotd.sessions.file_restores import policy_of
from zotd.sessions.session import Session
from zotd.sessions.session_limits import limit_for
from zotd.store.archive import Archive
from zotd.store.journal import StoredJournal
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import SERVER_LIMIT

QUERY_CHARS = 1_000
"""Longest query; it is typed by people, and each of its words is looked up."""

MAX_HITS = 100
"""Maximum number of hits in one response."""


async def search(archive: Archive, call: Invocation, params: api.Search) -> reports.SearchPage:
    """Return a page of messages with these words, newest first."""
    query = params.query.strip()
    if not query or len(query) > QUERY_CHARS:
        raise CommandError(Code.BAD_REQUEST, f"a query has 1 to {QUERY_CHARS} characters")
    before = place_of(params.cursor, "session.search")
    page = await archive.search(query, before=before, limit=max(1, min(params.limit, MAX_HITS)))
    await wait_for_room(call)
    return page


async def image(call: Invocation, params: api.ImageOfMessage) -> api.PromptImage:
    """Return an image of a message."""
    session = await session_of(call, params.session)
    found = await image_at(session.ledger.journal, session.id, params.seq, params.index)
    if len(found.data) > SERVER_LIMIT - ENVELOPE_BYTES:
        raise CommandError(Code.TOO_LARGE, f"the image has {found.bytes:,} bytes, more than fit into a response")
    await wait_for_room(call)
    return api.PromptImage(found.mime_type, found.data)


async def export(call: Invocation, params: api.Export) -> api.Exported:
    """Return a page of the session as JSON lines (records and events) or as Markdown."""
    session = await session_of(call, params.session)
    text, after = await export_page(session.ledger.journal, session.ledger.row, params.format, params.after)
    await wait_for_room(call)
    return api.Exported(text, after)


async def rewind(call: Invocation, params: api.Rewind) -> None:
    """Rewind the conversation to a message, and with `files` also what was done to files since."""
    session = await session_of(call, params.session)
    if params.files:
        await rewind_with_files(session, params.seq, policy_of(params.when_changed), accepted=call.respond)
    else:
        nothing = api.FilesRestored(restored=[], kept=[], files=0, checkpoint=0, text="")
        await rewind_to(session, params.seq, accepted=lambda: call.respond(nothing))


async def changes(call: Invocation, params: api.FileChanges) -> api.ChangedFiles:
    """Return what a run has changed in files."""
    session = await session_of(call, params.session)
    found = await file_restores.changes(session, params.after, params.until)
    await wait_for_room(call)
    return found


async def undo(call: Invocation, params: api.Undo) -> None:
    """Take back what the last run has changed in files."""
    session = await loaded(call, params.session)
    await file_restores.undo(session, policy_of(params.when_changed), accepted=call.respond, after=params.after)


async def redo(call: Invocation, params: api.Redo) -> None:
    """Make the changes again that the last undo has taken back."""
    session = await loaded(call, params.session)
    await file_restores.redo(session, policy_of(params.when_changed), accepted=call.respond)


async def fork(call: Invocation, params: api.Fork) -> api.Created:
    """Create a session that shares the transcript up to a message."""
    name = None if params.name is None else checked_name(params.name)
    origin = await session_of(call, params.session)
    journal = origin.ledger.journal
    if not isinstance(journal, StoredJournal):
        raise CommandError(Code.UNSUPPORTED, "an ephemeral session is not stored and cannot be forked")
    if origin.ledger.row.settings.agent:
        session = await _fork_with_agent(call, origin, journal, seq=params.seq, name=name)
    else:
        session = await call.manager.get(
            await fork_at(
                journal, origin.ledger.row, params.seq, name, limit=limit_for(call.manager.config.value, call.user)
            ),
            is_new=True,
        )
        session.use_environment(origin.environment)
    return api.Created(call.manager.info(session), session.ledger.shown_seq, journal.epoch)


async def _fork_with_agent(
    call: Invocation, origin: Session, journal: StoredJournal, *, seq: int | None, name: str | None
) -> Session:
    """Fork a session that another agent runs: its agent copies its own session, or there is no fork."""
    agents = call.manager.planner.other_agents
    await origin.load()
    is_earlier = seq is not None and seq < (await past_at(journal, origin.ledger.row, None, whole=False)).seq
    async with agents.forking(origin, is_earlier=is_earlier) as source:
        session = await call.manager.get(
            await fork_at(
                journal,
                origin.ledger.row,
                seq,
                name,
                limit=limit_for(call.manager.config.value, call.user),
                copied_from=source,
            ),
            is_new=True,
        )
        session.use_environment(origin.environment)
        if source is None:
            return session
        try:
            await session.load()
            await agents.copy(session)
        except CommandError:
            await call.manager.delete(session)
            raise
    return session


async def tree(archive: Archive, call: Invocation, params: api.OfSession) -> reports.Tree:
    """Return the branches and forks of a session."""
    session = await session_of(call, params.session)
    if session.ephemeral:
        raise CommandError(Code.UNSUPPORTED, "an ephemeral session is not stored and has no tree")
    found = await archive.branches(session.id, session.ledger.shown_seq)
    bounds = call.door.confinement
    forks = [fork for fork in found.forks if bounds is None or bounds.sees(fork.session)]
    origin = found.origin if found.origin and (bounds is None or bounds.sees(found.origin.session)) else None
    return reports.Tree(session.id, session.ledger.row.name, found.branches, forks, origin)


async def import_file(call: Invocation, params: api.Import) -> api.Imported:
    """Create a session from a file."""
    journal = call.manager.journal
    if journal is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon stores no sessions, so nothing can be imported")
    from zotd.history import importing  # noqa: PLC0415  (170 KiB, for what few people do once)

    source = importing.ImportSource(
        params.path,
        params.cwd,
        call.manager.config.value.approval.mode,
        limit_for(call.manager.config.value, call.user),
    )
    session_id, known = await importing.import_file(journal, source)
    session = await (call.manager.get(session_id) if known else call.manager.get(session_id, is_new=True))
    return api.Imported(call.manager.info(session), session.ledger.shown_seq, journal.epoch, known)
