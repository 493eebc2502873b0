"""What extensions get from where they live."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from zotd.exthost.manifest import Manifest, ProcessScope
from zotd.process import OrphanReaper
from zotd.process.handover_store import HandoverStore


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where extensions live, and what they are told about it."""

    cwd: str
    home: Path
    """`$ZOT_HOME`: logs and separate data."""
    env: Mapping[str, str]
    """Their environment, without what is withheld."""
    withheld: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that only those get whose manifest names them."""
    version: str = ""
    provider: str = ""
    model: str = ""
    features: tuple[str, ...] = ()
    reaper: OrphanReaper | None = None
    """Ends what they leave behind; None: only their groups end with them."""
    sessions: Collection[str] = ()
    """Those that they serve at any moment: what their programs see of a daemon."""
    handover_store: HandoverStore | None = None
    """Lets processes outlive the daemon, and has those that did; None: they end with it."""
    vet: Callable[[Manifest], str | None] = lambda _: None
    """Why an extension with `granted` code must not run now, as the end of a sentence. Blocks; called in a thread."""
    is_explicit: bool = False
    """They are those of `--ext`."""
    place: str = ""
    """Tells these surroundings apart from all others that share the handover store, also in the next daemon."""

    def named(self, manifest: Manifest) -> dict[str, str]:
        """The variables that this one gets although they are withheld."""
        return {name: self.withheld[name] for name in manifest.env if name in self.withheld}


@dataclass(frozen=True, slots=True)
class About:
    """What a frame to an extension is about."""

    session: str
    cwd: str

    def cwd_for(self, manifest: Manifest) -> str | None:
        """The working directory as frames carry it: only where one process serves many."""
        return self.cwd if manifest.scope is ProcessScope.DAEMON else None


def fingerprint(manifest: Manifest, env: Mapping[str, str], version: str) -> str:
    """Of all that a process gets at its start and keeps; `env`: what it gets although it is withheld.

    The rest of the environment is not in it: it is that of whichever client comes first, today as well.
    """
    facts: list[object] = [manifest.version, manifest.argv, str(manifest.directory), manifest.data, sorted(env.items())]
    facts.append(manifest.granted)
    if manifest.restarts_when_stuck or manifest.file is not None:
        facts.append(version)  # our own program, which an upgrade has changed
    if manifest.file is not None:
        with suppress(OSError):
            status = manifest.file.stat()
            facts.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return hashlib.sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()
