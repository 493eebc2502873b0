"""Commands about users."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import wait_for_room
from zotd.clock import rfc3339
from zotd.config import quota_of
from zotd.config.users import ALL
from zotd.store.archive import Archive
from zotd.store.user_days import DAY_CHARS, UserFigures
from zotd.wire import api, reports


async def listing(archive: Archive, call: Invocation, params: api.Nothing) -> reports.UserList:
    """List users, with what they have and may spend today."""
    del params
    day, quotas = rfc3339()[:DAY_CHARS], call.manager.config.value.users
    found = await archive.user_days.figures(day)
    await wait_for_room(call)
    none = UserFigures()
    states = []
    for user in sorted({*found, *quotas} - {ALL}):
        figures, quota = found.get(user, none), quota_of(quotas, user)
        states.append(reports.UserState(user, figures.sessions, quota.sessions, figures.usd, quota.usd_per_day))
    return reports.UserList(day, states)
