"""Parameters and results of the commands about extensions and trust (`docs/protocol.md`)."""

from zotd.wire.base import Frozen


class Scope(Frozen, frozen=True, kw_only=True):
    """Which extensions are meant: those of a session, of a working directory, or (neither) all of them."""

    session: str | None = None
    cwd: str | None = None


class Scoped(Scope, frozen=True, kw_only=True):
    """One extension, or (no name) all that the scope has."""

    name: str | None = None
    request_id: str | None = None


class ExtensionInfo(Frozen, frozen=True, omit_defaults=False):
    """One extension, as lists show it."""

    name: str
    version: str
    description: str
    language: str
    source: str
    """`session`, `project`, `user`, `mcp` or `modules`."""
    scope: str
    """`workspace` or `daemon`."""
    cwd: str
    """The working directory that it is, or would be, started for; empty: any."""
    directory: str
    state: str
    """`ready`, `starting`, `restarting`, `parked`, `stopping`, `stopped`, `disabled` or `untrusted`."""
    reason: str
    pid: int | None
    tools: list[str]
    commands: list[str]
    log: str
    responding: bool
    """False: a guard that is not asked any more until it answers."""
    session: str = ""
    """The session that has it for itself (`--ext`); empty: all sessions of the directory share it."""


class ExtensionList(Frozen, frozen=True, omit_defaults=False):
    """In load order; those that run first."""

    extensions: list[ExtensionInfo]


class Finding(Frozen, frozen=True):
    """Something that is not as it should be."""

    extension: str
    """Empty: none in particular."""
    text: str
    cwd: str = ""
    kind: str = "failing"
    """`failing`; `doubtful`: works, and not as its author may think; `untrusted`: waits for `trust.grant`; `disabled`: a person has switched it off, nothing is wrong."""


class Findings(Frozen, frozen=True, omit_defaults=False):
    """What is wrong with extensions, and why some are not used."""

    findings: list[Finding]


class Logs(Scope, frozen=True, kw_only=True):
    """The end of an extension's log; with `follow`, `ext_log` events from there on, until the connection ends."""

    name: str
    lines: int = 200
    follow: bool = False


class LogPage(Frozen, frozen=True, omit_defaults=False):
    """The last lines."""

    path: str
    text: str


class Tap(Scope, frozen=True, kw_only=True):
    """Every frame of an extension from now on, as `ext_frame` events, until the connection ends."""

    name: str


class Reloaded(Frozen, frozen=True, omit_defaults=False):
    """What a reload did, by name."""

    stopped: list[str]
    loaded: list[str]
    ready: list[str]
    errors: list[str]
    """Sentences."""


class Install(Frozen, frozen=True):
    """A path or a git URL, `URL@REF` for a branch, tag or commit; `replace` one that came from elsewhere."""

    source: str
    replace: bool = False
    request_id: str | None = None


class InstalledExtension(Frozen, frozen=True):
    """What was installed; it runs after the next reload, or in the next workspace."""

    name: str
    version: str
    directory: str
    digest: str
    commit: str = ""
    kept: str = ""
    """Where a copy is of what it replaced, when that had more in it than was installed."""


class Name(Frozen, frozen=True):
    """One installed extension."""

    name: str
    request_id: str | None = None


class Remove(Name, frozen=True, kw_only=True):
    """One installed extension, to be removed."""

    data: bool = False
    """Delete what it keeps in `$ZOT_HOME/data` as well."""


class Removed(Frozen, frozen=True, omit_defaults=False):
    """What was removed, and what is still there."""

    name: str
    data: str
    """The directory of its data; empty: there is none."""
    kept: str
    """Where the extension is now that was not installed by us; empty: it is deleted."""


class TrustPath(Frozen, frozen=True):
    """A working directory, absolute."""

    path: str
    request_id: str | None = None


class TrustScope(Frozen, frozen=True):
    """Which working directories are meant."""

    path: str | None = None
    """This one, absolute, trusted or not; without it all that are trusted."""


class TrustGrant(TrustPath, frozen=True, kw_only=True):
    """A working directory, and the code in it that a person has been shown."""

    digest: str | None = None
    """As `trust.list` gives it: the code may have changed meanwhile, and is not trusted then. None: as it is."""


class TrustedWorkspace(Frozen, frozen=True, omit_defaults=False):
    """A working directory whose code may run."""

    path: str
    state: str
    """`trusted`, `changed` (asked again) or `unknown`."""
    items: list[str]
    """Files that would run; of one that has changed, those."""
    digest: str = ""
    commands: list[str] = []  # noqa: RUF012  (msgspec copies an empty default)
    """What its code would start, each with where that is said, for a person to read."""


class TrustList(Frozen, frozen=True, omit_defaults=False):
    """By path."""

    workspaces: list[TrustedWorkspace]
