"""What extensions get from their workspace: directories, environment, limits of trust."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from zotd.exthost.jails import ExtensionJails
from zotd.exthost.manifest import Manifest, ProcessScope
from zotd.process import OrphanReaper
from zotd.process.handover_store import HandoverStore
from zotd.template.forks import Forks


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment shared by all extensions of a host."""

    cwd: str
    home: Path
    """`$ZOT_HOME`: logs and separate data."""
    env: Mapping[str, str]
    """Environment variables, without those in `withheld`."""
    withheld: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that only extensions get whose manifest names them."""
    version: str = ""
    provider: str = ""
    model: str = ""
    features: tuple[str, ...] = ()
    reaper: OrphanReaper | None = None
    """Ends processes that have left an extension's group; None: only the groups end."""
    forks: Forks | None = None
    """Forks Python programs, which then need not import anything; None: every program is executed."""
    sessions: Collection[str] = ()
    """Ids of the sessions they serve, which their programs may read; updated by the owner."""
    handover_store: HandoverStore | None = None
    """Keeps pipes of processes that outlive the daemon; None: they end with the daemon."""
    vet: Callable[[Manifest], str | None] = lambda _: None
    """Returns why an extension with `granted` code must not run, as the end of a sentence. Blocks; called in a thread."""
    jails: ExtensionJails | None = None
    """Confines programs that ask for it; None: those are not started."""
    is_explicit: bool = False
    """The extensions were named with `--ext`."""
    place: str = ""
    """Identifies these surroundings in the handover store, also in the next daemon."""

    def named(self, manifest: Manifest) -> dict[str, str]:
        """Return the withheld variables that this manifest names."""
        return {name: self.withheld[name] for name in manifest.env if name in self.withheld}


@dataclass(frozen=True, slots=True)
class About:
    """The session that a frame to an extension is about."""

    session: str
    cwd: str

    def cwd_for(self, manifest: Manifest) -> str | None:
        """Return the working directory if frames carry it, that is, if one process serves many directories."""
        return self.cwd if manifest.scope is ProcessScope.DAEMON else None


def fingerprint(manifest: Manifest, env: Mapping[str, str], version: str) -> str:
    """Digest everything that a process gets at its start. If it differs, a surviving process is not adopted.

    `env` has only the withheld variables that the manifest names. The others come from whichever client opened the
    workspace first, so they may differ without a reason to restart.
    """
    facts: list[object] = [manifest.version, manifest.argv, str(manifest.directory), manifest.data, sorted(env.items())]
    facts.append(manifest.granted)
    if manifest.sandbox is not None:
        facts.append(manifest.sandbox)
    if manifest.saved:
        facts.append(manifest.saved)
    if manifest.restarts_when_stuck or manifest.file is not None:
        facts.append(version)  # a program of zot, which an upgrade changes
    if manifest.file is not None:
        # An entry may have changed while the daemon was down. A bridge reads it only at its start.
        with suppress(OSError):
            status = manifest.file.stat()
            facts.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return hashlib.sha256(repr(facts).encode(errors="surrogateescape")).hexdigest()
