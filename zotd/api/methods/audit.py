"""Commands about the audit trail."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import wait_for_room
from zotd.store.archive import Archive
from zotd.store.audit import AuditFilter
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError

MAX_ENTRIES = 500
"""Most entries of a page; each has at most 4 KB."""


async def listing(archive: Archive, call: Invocation, params: api.AuditQuery) -> reports.AuditPage:
    """List who has decided what, newest first."""
    if not 1 <= params.limit <= MAX_ENTRIES:
        raise CommandError(Code.BAD_REQUEST, f"audit.list: limit must be from 1 to {MAX_ENTRIES}")
    await wait_for_room(call)
    wanted = AuditFilter(params.who or "", params.command or "", params.session or "")
    return await archive.audit.page(wanted, before=params.cursor or "", limit=params.limit)
