"""Parameters and results of the commands about extensions and trust (`docs/protocol.md`)."""

from zotd.wire.base import Frozen


class Scope(Frozen, frozen=True, kw_only=True):
    """Which extensions are meant: those of a session, of a working directory, or (neither) all of them."""

    session: str | None = None
    cwd: str | None = None


class Scoped(Scope, frozen=True, kw_only=True):
    """One extension of the scope, or all of them if `name` is absent."""

    name: str | None = None
    request_id: str | None = None


class ExtensionInfo(Frozen, frozen=True, omit_defaults=False):
    """An extension, what it has registered, and its state."""

    name: str
    version: str
    description: str
    language: str
    source: str
    """`session`, `project`, `user`, `mcp` or `modules`."""
    scope: str
    """`workspace` or `daemon`."""
    cwd: str
    """The working directory it is started for; empty: any."""
    directory: str
    state: str
    """`ready`, `starting`, `restarting`, `parked`, `stopping`, `stopped`, `disabled` or `untrusted`."""
    reason: str
    pid: int | None
    tools: list[str]
    commands: list[str]
    log: str
    responding: bool
    """False: a guard that timed out and is not asked again until it answers."""
    rights: str = ""
    """What its program may do, as a clause that continues its name; see `sandbox` in `docs/extensions.md`."""
    session: str = ""
    """The session that uses it alone (`--ext`); empty: all sessions of the directory share it."""


class ExtensionList(Frozen, frozen=True, omit_defaults=False):
    """In load order, running ones first."""

    extensions: list[ExtensionInfo]


class Finding(Frozen, frozen=True):
    """A problem, or something worth knowing about an extension."""

    extension: str
    """Empty: not about one extension."""
    text: str
    cwd: str = ""
    kind: str = "failing"
    """`failing`; `doubtful`: works, but perhaps not as its author expects; `untrusted`: needs `trust.grant`;
    `disabled`: switched off by the user."""


class Findings(Frozen, frozen=True, omit_defaults=False):
    """What is wrong with extensions, and why some are not used."""

    findings: list[Finding]


class Logs(Scope, frozen=True, kw_only=True):
    """The end of an extension's log; with `follow`, `ext_log` events from there on, until the connection ends."""

    name: str
    lines: int = 200
    follow: bool = False


class LogPage(Frozen, frozen=True, omit_defaults=False):
    """The last lines of a log, and the path of the file."""

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
    """One sentence each."""


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
    """Path of a copy of the replaced version, if that contained added or changed files."""
    rights: str = ""
    """What its program may do, as a clause that continues its name."""


class Name(Frozen, frozen=True):
    """Parameters of commands that only name an installed extension."""

    name: str
    request_id: str | None = None


class Remove(Name, frozen=True, kw_only=True):
    """One installed extension, to be removed."""

    data: bool = False
    """Also delete its data in `$ZOT_HOME/data`."""


class Removed(Frozen, frozen=True, omit_defaults=False):
    """What was removed, and what is still there."""

    name: str
    data: str
    """Its data directory; empty: none."""
    kept: str
    """Where the extension's directory was moved, if it was not installed by zot; empty: it was deleted."""


class TrustPath(Frozen, frozen=True):
    """A working directory, absolute."""

    path: str
    request_id: str | None = None


class TrustScope(Frozen, frozen=True):
    """Which working directories are meant."""

    path: str | None = None
    """Only this absolute path, trusted or not; without it, all trusted workspaces."""


class TrustGrant(TrustPath, frozen=True, kw_only=True):
    """A working directory, and the code in it that a person has been shown."""

    digest: str | None = None
    """The digest from `trust.list`; if the code has changed since, the request is refused. null: trust the code as it
    is now."""


class TrustedWorkspace(Frozen, frozen=True, omit_defaults=False):
    """A workspace whose own code may run."""

    path: str
    state: str
    """`trusted`, `changed` (needs to be trusted again) or `unknown`."""
    items: list[str]
    """Files that would run; for `changed`, those that differ."""
    digest: str = ""
    commands: list[str] = []  # noqa: RUF012  (msgspec copies an empty default)
    """Commands that its code would start, each with its source, as text for the user."""


class TrustList(Frozen, frozen=True, omit_defaults=False):
    """Workspaces, sorted by path."""

    workspaces: list[TrustedWorkspace]
