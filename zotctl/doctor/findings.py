"""The problems that `zotctl doctor` detects, as data; `docs/troubleshooting.md` and the tests are built from it.

A check (such as those in `zotctl.doctor.host_checks`) yields a `Finding` and fills in the placeholders of `next`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One kind of problem."""

    id: str
    """Stable identifier for scripts and documentation."""
    what: str
    """The problem in a few words."""
    sign: str
    """How the check detects it."""
    next: str
    """The command to run; `{name}` placeholders are filled in by the check."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a check has found."""

    state: ProblemKind
    text: str
    """The problem in one sentence, with paths and numbers."""
    next: str


STATES = (
    ProblemKind(
        "stale-socket",
        "zotd was killed and left its socket behind",
        "the socket exists, no process listens on it, and no process holds the lock of the home",
        "zotctl start",
    ),
    ProblemKind(
        "listener-lost",
        "zotd is running, but new clients cannot find it",
        "a process holds the lock of the home, and its socket is gone or another process answers there",
        "kill -USR1 {pid}",
    ),
    ProblemKind(
        "wedged",
        "zotd accepts connections but does not answer",
        "the connection succeeds, but no answer arrives within a second",
        "kill -CONT {pid} if a signal stopped it, otherwise zotctl stop --force && zotctl start",
    ),
    ProblemKind(
        "version-mismatch",
        "zotd and this program have different versions",
        "the version in the daemon's status",
        "zotctl restart --when-idle",
    ),
    ProblemKind(
        "unmanaged",
        "a service is installed but did not start the running zotd",
        "a unit exists for this home and no service manager started the daemon, or the other way round",
        "zotctl restart --when-idle",
    ),
    ProblemKind(
        "unreachable",
        "the socket cannot be used",
        "it belongs to another user, is not a socket, or access is denied",
        "ls -l {socket}",
    ),
    ProblemKind(
        "gave-up",
        "zotd keeps crashing, and clients no longer start it",
        "three starts within a minute, each ending within 20 s (`<socket>.starts`)",
        "zotctl start",
    ),
    ProblemKind(
        "socket-directory",
        "the directory of the socket is not private",
        "it is a symbolic link, belongs to another user, or is accessible to others",
        "chmod 700 {folder}",
    ),
    ProblemKind(
        "home-not-writable",
        "the home is not writable",
        "a file cannot be created there",
        "ls -ld {home}",
    ),
    ProblemKind(
        "disk-full",
        "the disk of the home is full or nearly full",
        "a file of 64 KiB cannot be written, or less than 32 MiB are free",
        "df -h {home}",
    ),
    ProblemKind(
        "log-not-writable",
        "the daemon's log is not writable",
        "it cannot be opened or created",
        "ls -ld {log}",
    ),
    ProblemKind(
        "config-invalid",
        "the configuration is invalid",
        "the daemon rejects a value, a key or the file",
        "zotctl config check",
    ),
    ProblemKind(
        "auth-file",
        "the file with the keys cannot be used",
        "other users may read it, or its contents are invalid",
        "chmod 600 {file} if the mode is wrong, otherwise mv {file} {file}.old",
    ),
    ProblemKind(
        "cold-start",
        "every command takes 0.1 to 2 s to import its modules",
        "the template process, from which commands are forked, refuses the ones that are started here",
        "end what the sentence names, or set ZOT_TEMPLATE=off if it must be so",
    ),
    ProblemKind(
        "no-jail",
        "no jail is possible, so sessions in the mode `workspace` ask before each change",
        "neither bubblewrap nor Landlock works here, and `approval.mode` is `workspace`",
        "install bubblewrap, or set approval.mode in config.toml to ask, which then says the same",
    ),
    ProblemKind(
        "extensions-cold",
        "each extension in Python takes 20 ms and more to start",
        "the process from which the daemon forks them does not start, ends or hangs",
        "zotctl restart --when-idle",
    ),
    ProblemKind(
        "no-key",
        "no API key is set, so no model can be used",
        "there is none in the environment, in `auth.json`, from `api_key_command` or in the daemon",
        "zotctl login anthropic",
    ),
    ProblemKind(
        "login-file",
        "`logins.json` cannot be used",
        "it is damaged, or other users can read it",
        "chmod 600 {file} if the mode is wrong, otherwise mv {file} {file}.old and log in again",
    ),
    ProblemKind(
        "login-ended",
        "a login by subscription has ended",
        "the vendor has refused to renew its tokens: the login was revoked, or not used for too long",
        "zotctl login PROVIDER",
    ),
    ProblemKind(
        "database-damaged",
        "the database is damaged",
        "SQLite's quick check fails (it runs for up to a second)",
        "zotctl verify",
    ),
    ProblemKind(
        "database-newer",
        "the database was written by a newer zot",
        "its schema version is newer than this program's",
        "which -a zotd",
    ),
    ProblemKind(
        "database-unreachable",
        "the database of `[journal] url` cannot be used",
        "it is connected to as the daemon does, and no such connection is made, or its tables cannot be read",
        "psql '{url}'",
    ),
    ProblemKind(
        "linger-off",
        "the service stops when you log out",
        "a systemd service is installed, and `loginctl` reports that linger is off",
        "loginctl enable-linger",
    ),
    ProblemKind(
        "extension-failing",
        "an extension does not work",
        "`zotctl ext doctor` reports it for this directory",
        "zotctl ext logs {name}",
    ),
    ProblemKind(
        "extension-doubtful",
        "a tool accepts arguments that its function does not expect",
        "`zotctl ext doctor` names a parameter whose type hint is not in the schema sent to the model",
        "zotctl ext reload {name}, after correcting the type hint",
    ),
    ProblemKind(
        "code-untrusted",
        "extensions of this directory are not trusted",
        "`zotctl ext doctor` reports that their code is new or has changed and was not run",
        "zotctl trust grant {cwd}",
    ),
    ProblemKind(
        "port-taken",
        "the WebSocket listener is configured but not open",
        "`websocket.listen` is set, and the daemon does not listen there",
        "zotctl restart --when-idle",
    ),
    ProblemKind(
        "slow-check",
        "a check timed out",
        "a check takes over a second: a file system or a program does not answer",
        "df {home}",
    ),
)

BY_ID = {state.id: state for state in STATES}


def found(state: str, text: str, command: str | None = None, /, **names: object) -> Finding:
    """Create a finding. `command` replaces the command of the table, whose placeholders `names` fill in."""
    row = BY_ID[state]
    return Finding(row, text, row.next.format(**names) if command is None else command)
