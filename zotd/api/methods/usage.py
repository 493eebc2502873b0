"""Commands about the usage of models."""

from datetime import datetime
from typing import Annotated

import msgspec

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import wait_for_room
from zotd.clock import rfc3339
from zotd.ledger.spending import Spending
from zotd.store.archive import Archive
from zotd.store.usage import GROUPS
from zotd.wire import api, reports
from zotd.wire.errors import Code, CommandError

_TIME = Annotated[datetime, msgspec.Meta(tz=True)]


async def report(archive: Archive, spending: Spending, call: Invocation, params: api.UsageReport) -> reports.UsageSums:
    """Return tokens and cost since a time, by model, session or directory; and the budgets."""
    if params.by not in GROUPS:
        raise CommandError(Code.BAD_REQUEST, f'usage can be grouped by {", ".join(GROUPS)}, not by "{params.by}"')
    since = "" if params.since is None else _in_utc(params.since)
    rows = await archive.usage(since=since, by=params.by)
    await wait_for_room(call)
    budgets = spending.states(session.ledger.row for session in call.manager.loaded)
    return reports.UsageSums(rows, budgets)


def _in_utc(time: str) -> str:
    """Return the time in the format of records, so that the two can be compared as text."""
    try:
        since: datetime = msgspec.convert(time, _TIME)
        return rfc3339(since.timestamp())
    except (msgspec.ValidationError, OverflowError, ValueError) as error:
        raise CommandError(Code.BAD_REQUEST, f'"{time}" is not a time; write it like 2026-11-21T20:11:18Z') from error
