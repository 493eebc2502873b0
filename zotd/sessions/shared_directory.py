"""Warns, once in each session, that another session works in the same directory."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.sanitize import escaped
from zotd.sessions.session import Session
from zotd.wire import events


class SharedDirectoryWarning:
    """Watches the calls of one session."""

    def __init__(self, session: Session, loaded: Callable[[], Iterable[Session]]) -> None:
        """`loaded` returns the sessions in memory."""
        self._session = session
        self._loaded = loaded
        self._was_told = False

    def committed(self, items: Sequence[Shown]) -> None:
        """Show the warning if a call begins that may change files, and a run of another session is active there."""
        ledger = self._session.ledger
        if (
            self._was_told
            or not ledger.followers
            or not any(isinstance(one.record, records.CallStarted) for one in items)
        ):
            return
        others = (one for one in self._loaded() if one is not self._session and one.ledger.row.cwd == ledger.row.cwd)
        # A subagent and its parent know of each other, and both are one work.
        is_one_s_own = ledger.row.parent is None
        other = next((one for one in others if one.work.is_active and is_one_s_own and not one.ledger.row.parent), None)
        if other is not None:
            self._was_told = True
            name = other.ledger.row.name or other.id
            sentence = (
                f"the session {escaped(name)} is working in {escaped(ledger.row.cwd)}, too, and both may change the same "
                "files; `zot -w` starts a session in a worktree of its own"
            )
            notice = events.Notice("warn", sentence, session=ledger.label)
            asyncio.get_running_loop().call_soon(ledger.live, [notice])  # behind the events of this commit
