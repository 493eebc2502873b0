"""Parameters and results of the command about language servers (`docs/protocol.md`)."""

from zotd.wire.base import Frozen


class DiagnosticsScope(Frozen, frozen=True, kw_only=True):
    """Which servers are meant."""

    cwd: str | None = None
    """Those of this working directory, and which known ones it has installed; absent: all that run."""


class LanguageServerInfo(Frozen, frozen=True, omit_defaults=False):
    """A language server that sessions have used."""

    name: str
    root: str
    state: str
    """`starting`, `ready`, `stopped` (it starts with the next edit) or `off`."""
    reason: str
    """Why it is off or slow, or has ended last, as a clause that continues its name."""
    pid: int | None
    memory_bytes: int | None
    """Resident memory of its processes; null: none runs."""
    files: int
    """Files that it has open."""
    sessions: list[str]
    """Sessions whose edits it has checked, and that are in memory."""


class KnownServer(Frozen, frozen=True, omit_defaults=False):
    """A language server that could be used."""

    name: str
    languages: list[str]
    """Suffixes of its files."""
    program: str | None
    """Path of the program; null: it is not installed."""


class LanguageServerReport(Frozen, frozen=True, omit_defaults=False):
    """What there is of language servers."""

    enabled: bool
    """Whether edits are checked at all, the setting `diagnostics.enabled`."""
    servers: list[LanguageServerInfo]
    known: list[KnownServer]
    """Those that the settings and the catalog have."""
