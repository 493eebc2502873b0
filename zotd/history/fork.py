"""Forks: a new session that begins with a copy of another one's records, up to a message.

A copy, not a reference: cursors, damage, backup and the deletion of either session are then what they are for every
session (`docs/decisions/0014-fork-rewind-import.md`).
"""

import msgspec

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.lineage import events_left
from zotd.core.plan import returned
from zotd.core.ports import NAME_CHARS, SessionRow
from zotd.history.draft import Draft
from zotd.history.past import Past, past_at
from zotd.sessions.plans import renewed
from zotd.store.journal import StoredJournal
from zotd.store.session_limits import SessionLimit
from zotd.store.staged import STATE, Share
from zotd.store.staging import staging
from zotd.wire import events

SUFFIX = " (fork)"


async def fork(
    journal: StoredJournal,
    origin: SessionRow,
    seq: int | None,
    name: str | None,
    *,
    limit: SessionLimit,
    copied_from: str | None = None,
) -> str:
    """Make a session that goes on from the message `seq` of another one (None: from its last); its id.

    `limit`: of the user that gets it. `copied_from`: the session of another agent, which runs the turns, that it is to copy. The other one
    may run meanwhile.

    Raises:
        CommandError: there is no such message, calls had no result yet, or the user has too many sessions.
        StorageError: the journal cannot be read or written.
    """
    past = await past_at(journal, origin, seq, whole=False)
    now = rfc3339()
    name = name or origin.name[: NAME_CHARS - len(SUFFIX)] + SUFFIX
    row = SessionRow(ids.new("s"), name, origin.cwd, now, now, origin.settings, STATE, user=limit.user)
    share = Share(origin.id, past.number, past.seq)
    async with staging(journal.database, row, limit) as staged:
        await staged.copy(share)
        draft = Draft(_as_of(past, staged.row))
        record = records.ForkRow(time=now, session=origin.id, at=past.seq)
        draft.add(record, [events.Forked(origin.id, past.seq)])
        if copied_from is not None:
            draft.add(records.AgentSession(time=now, id="", copied_from=copied_from))
        for one in renewed(draft.row, draft.row.plan):
            draft.add(one.record, one.shows)
        await staged.publish(draft.row, draft.take(), share=share)
    return row.id


def _as_of(past: Past, row: SessionRow) -> SessionRow:
    """The row of a session that goes on from there. What was spent was spent by the other one."""
    return msgspec.structs.replace(
        row,
        state="idle",
        messages=len(past.fold.transcript.messages),
        context=past.context,
        base=past.fold.base,
        abandoned=events_left(past.rewinds),
        plan=returned(past.plan, None),
    )
