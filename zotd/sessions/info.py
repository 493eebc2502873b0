"""A session as lists and snapshots show it."""

from zotd.core.ports import Row
from zotd.wire.api import SessionInfo


def describe(row: Row, state: str, clients: int, *, ephemeral: bool = False) -> SessionInfo:
    """A row of the journal's index as lists and snapshots show it."""
    settings = row.settings
    return SessionInfo(
        id=row.id,
        name=row.name,
        cwd=row.cwd,
        provider=settings.provider,
        model=settings.model,
        reasoning=settings.reasoning,
        mode=settings.mode,
        state=state,
        created=row.created,
        updated=row.updated,
        message_count=row.messages,
        clients=clients,
        ephemeral=ephemeral,
    )
