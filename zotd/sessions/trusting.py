"""Whether the code that a workspace brings along may run, and what a person is asked about it."""

import logging
import os
from pathlib import Path

from zotd.core.ports import StorageError
from zotd.logs import escaped
from zotd.store.trust import Changed, Trust, Trusted, Unknown
from zotd.wire.events import TrustRequired

log = logging.getLogger(__name__)

SHOWN_ITEMS = 5
"""Of what is not run, in the sentence about it."""


class Trusting:
    """The trust in one workspace. What blocks says so: call it in a thread."""

    def __init__(self, trust: Trust, cwd: str) -> None:
        self.is_vouched_for = False
        """A client trusts it (`--trust`, `ZOT_TRUST=1`), whatever is stored."""
        self.is_trusted = False
        """Its code may run, as it was found at the last look; also when there is none."""
        self.is_granted = False
        """Somebody has said so; what the code's digest does not cover, such as skills of other agents, needs that."""
        self.question: TrustRequired | None = None
        """What a person would have to be asked."""
        self.path = cwd
        """The workspace's real path, as trust goes by; known at the first look."""
        self._trust = trust
        self._cwd = cwd
        self._since: str | None = None

    def look(self) -> bool:
        """Whether the code may run. Blocks."""
        self.path = os.path.realpath(self._cwd)
        try:
            state = self._trust.state(Path(self._cwd))
        except StorageError as error:
            log.warning("nothing is trusted: %s", error)
            self.is_trusted = self.is_granted = self.is_vouched_for
            self.question = self._since = None
            return self.is_trusted
        self._since = state.digest if isinstance(state, Trusted) else None
        self.is_granted = self.is_vouched_for or isinstance(state, Trusted)
        asks = isinstance(state, Changed | Unknown) and not self.is_vouched_for
        self.is_trusted = not asks
        self.question = None
        if asks and isinstance(state, Changed | Unknown):
            items = state.files if isinstance(state, Changed) and state.files else state.code.items
            self.question = TrustRequired(cwd=self._cwd, items=list(items), digest=state.code.digest)
        return self.is_trusted

    def keep(self) -> None:
        """Trust what became of trusted code while it was live. Blocks."""
        if self._since is None:
            return
        try:
            kept = self._trust.update(Path(self._cwd), since=self._since)
        except StorageError as error:
            log.warning("%s; %s is asked about again", error, self._cwd)
            return
        self._since = kept.digest if kept is not None else None

    @property
    def sentence(self) -> str | None:
        """The question as one line for people; None: there is none."""
        if self.question is None or self.is_vouched_for:
            return None
        items, cwd = self.question.items, escaped(self._cwd)
        named = ", ".join(escaped(item) for item in items[:SHOWN_ITEMS])
        more = f" and {len(items) - SHOWN_ITEMS} more" if len(items) > SHOWN_ITEMS else ""
        return (
            f"{cwd} has code of its own, which is not run because nobody trusts it: {named}{more};"
            f" look at it, then: zotctl trust grant {cwd}"
        )
