"""Which user may have another session, as the quotas of the configuration say."""

from msgspec.structs import replace

from zotd.config import Config, quota_of
from zotd.core import records
from zotd.core.ports import SessionRow
from zotd.ledger.entries import entry_of
from zotd.store.journal import StoredJournal
from zotd.store.session_limits import SessionLimit
from zotd.store.staging import staging
from zotd.wire.errors import Code, CommandError


def limit_for(config: Config, user: str) -> SessionLimit:
    """Return what limits the sessions of a user."""
    return SessionLimit(user, quota_of(config.users, user).sessions)


def has_quota(config: Config, user: str) -> bool:
    """Whether anything limits this user; sessions that are not stored would escape it."""
    quota = quota_of(config.users, user)
    return quota.sessions is not None or quota.usd_per_day is not None


def limit_of(config: Config, row: SessionRow, *, ephemeral: bool) -> SessionLimit | None:
    """Return what limits how many sessions like this one its user may have; None: nothing.

    Raises:
        CommandError: nothing of the session is stored, so it would escape the quotas of its user.
    """
    if not row.user:
        return None
    if ephemeral and has_quota(config, row.user):
        sentence = f"the user {row.user} has a quota, and a session that is not stored is not counted"
        raise CommandError(Code.FORBIDDEN, f"{sentence}; leave out --no-session")
    limit = limit_for(config, row.user)
    return None if limit.sessions is None or row.parent is not None else limit


async def store_within(
    journal: StoredJournal, row: SessionRow, record: records.ConfigRecord, limit: SessionLimit
) -> None:
    """Store a new session with its first record, unless its user has too many.

    Raises:
        CommandError: there are too many.
        StorageError: the journal cannot be written.
    """
    entry = entry_of(row.records + 1, record, row.seq + 1, ())
    async with staging(journal.database, row, limit) as staged:
        await staged.publish(replace(row, records=row.records + 1), [entry])
