"""Whether the code that a workspace brings along may run, and what a person is asked about it."""

import logging
import os
import threading
from pathlib import Path

from zotd.core.ports import StorageError
from zotd.exthost.manifest import Manifest
from zotd.sanitize import escaped
from zotd.store.trust import Changed, NothingToTrust, State, Trust, Trusted, UntrustedCode, WorkspaceCode
from zotd.wire.events import TrustRequired

log = logging.getLogger(__name__)

SHOWN_ITEMS = 5
"""Most items that a sentence about untrusted code names."""


class WorkspaceTrust:
    """The trust in one workspace. What blocks says so: call it in a thread."""

    def __init__(self, trust: Trust, cwd: str) -> None:
        self.is_trusted = False
        """Its code may run, as it was found at the last look; also when there is none."""
        self.is_granted = False
        """A user has granted trust. What the code's digest does not cover, such as skills of other agents, needs it."""
        self.is_changed = False
        """It was trusted with other content: what runs of that goes on, and nothing of it is started."""
        self.question: TrustRequired | None = None
        """What a person would have to be asked."""
        self.path = cwd
        """The workspace's real path, as trust goes by; known at the first look."""
        self.code: WorkspaceCode | None = None
        """The code found at the last look; None if it may not run."""
        self._trust = trust
        self._cwd = cwd
        self._vouched: str | None = None
        """The digest of what a client has vouched for."""
        self._is_vouching = False
        self._looking = threading.Lock()

    @property
    def is_vouched_for(self) -> bool:
        """Whether a client trusts it (`--trust`, `ZOT_TRUST=1`), whatever is stored."""
        return self._is_vouching or self._vouched is not None

    def vouch(self) -> None:
        """A client trusts what the next look finds, for as long as this lives."""
        self._is_vouching = True

    def look(self) -> bool:
        """Whether the code may run. Blocks."""
        with self._looking:
            self._look()
            return self.is_trusted

    def mark(self, manifest: Manifest) -> str:
        """What `Manifest.granted` says of the code that was found at the last look; empty: it cannot be checked."""
        return "" if self.code is None else self.code.part(_below(manifest, self._cwd))

    def vet(self, manifest: Manifest) -> str | None:
        """Why a process of this extension must not run now, as the end of a sentence; None: it may. Blocks."""
        if not manifest.granted:
            return None
        if self._trust.code(Path(self._cwd)).part(_below(manifest, self._cwd)) == manifest.granted:
            return None
        return f"has changed since it was trusted; look at it, then: zotctl trust grant {escaped(self._cwd)}"

    @property
    def sentence(self) -> str | None:
        """The question as one line for people; None: there is none."""
        if self.question is None:
            return None
        items, cwd = self.question.items, escaped(self._cwd)
        named = ", ".join(escaped(item) for item in items[:SHOWN_ITEMS])
        more = f" and {len(items) - SHOWN_ITEMS} more" if len(items) > SHOWN_ITEMS else ""
        if self.is_changed:
            what = f"the code of {cwd} has changed since it was trusted, and what has changed is not run"
        else:
            what = f"{cwd} has code of its own, which is not run because it is not trusted"
        return f"{what}: {named}{more}; look at it, then: zotctl trust grant {cwd}"

    def absent(self, tool: str) -> str:
        """What a model is told that calls a tool which may belong to code that is not trusted."""
        if self.question is None:
            return ""
        cwd = escaped(self._cwd)
        file = f".zot/extensions/tools/{tool}.py"
        who = f'the tool "{tool}" is in {file}' if file in self.question.items else f'there is no tool "{tool}" yet'
        why = "has changed since it was trusted" if self.is_changed else "is not trusted"
        named = ", ".join(escaped(item) for item in self.question.items[:SHOWN_ITEMS])
        return (
            f"{who}, but code of this directory {why} and is not run ({named}); "
            f"ask the user to look at it and to run: zotctl trust grant {cwd}"
        )

    def _look(self) -> None:
        self.path = os.path.realpath(self._cwd)
        code = self._trust.code(Path(self._cwd))
        if self._is_vouching:
            self._vouched, self._is_vouching = code.digest, False
        is_vouched_for = self._vouched == code.digest
        state = self._state(code)
        self.is_granted = is_vouched_for or isinstance(state, Trusted)
        self.is_trusted = self.is_granted or isinstance(state, NothingToTrust)
        self.code = code if self.is_trusted else None
        self.question = None
        self.is_changed = False
        if not self.is_trusted and isinstance(state, Changed | UntrustedCode):
            self.is_changed = isinstance(state, Changed) or self._vouched is not None
            items = state.files if isinstance(state, Changed) and state.files else code.items
            self.question = TrustRequired(cwd=self._cwd, items=list(items), digest=code.digest)

    def _state(self, code: WorkspaceCode) -> State | None:
        """What is stored; None: that cannot be read, and nothing is trusted."""
        try:
            return self._trust.state(Path(self._cwd), code=code)
        except StorageError as error:
            log.warning("nothing is trusted: %s", error)
            return None


def _below(manifest: Manifest, cwd: str) -> str:
    """The directory of a project's extension as a path from the workspace; empty: it has none of its own."""
    directory = os.path.relpath(manifest.directory, cwd)
    return "" if directory == "." else directory
