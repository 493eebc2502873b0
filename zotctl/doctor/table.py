"""The states in which zot is broken that people meet, as data: `docs/troubleshooting.md` and the tests read it.

A check (`zotctl.doctor.checks`) finds a state and fills in what `next` leaves open.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """One way of being broken."""

    id: str
    """Stable: scripts and answers to questions name it."""
    what: str
    """What is wrong, in a few words."""
    sign: str
    """How it is recognised."""
    next: str
    """The command to type; `{names}` in braces are filled in."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A state that was found."""

    state: State
    text: str
    """What exactly is wrong, in one sentence."""
    next: str


STATES = (
    State(
        "stale-socket",
        "zotd was killed and has left its socket",
        "the socket is there, nobody listens, and no process holds the lock of the home",
        "zotctl start",
    ),
    State(
        "listener-lost",
        "zotd lives, and new clients do not find it",
        "a process holds the lock of the home, and its socket is gone, or somebody else answers there",
        "kill -USR1 {pid}",
    ),
    State(
        "wedged",
        "zotd listens and does not answer",
        "a connection, but no answer within a second",
        "kill -CONT {pid}, when a signal has stopped it; else zotctl stop --force && zotctl start",
    ),
    State(
        "version-mismatch",
        "zotd is of another version than this program",
        "what it says of itself in its status",
        "zotctl restart --when-idle",
    ),
    State(
        "unmanaged",
        "a service is installed, and zotd runs beside it",
        "a unit for this home, and a daemon that no service manager has started, or the other way round",
        "zotctl restart --when-idle",
    ),
    State(
        "unreachable",
        "what is at the socket cannot be used",
        "it belongs to another user, is no socket, or the system refuses",
        "ls -l {socket}",
    ),
    State(
        "gave-up",
        "zotd did not live, and clients have stopped starting it",
        "three starts within a minute that did not live for 20 s (`<socket>.starts`)",
        "zotctl start",
    ),
    State(
        "socket-directory",
        "the directory of the socket is not private",
        "it is a link, somebody else's, or open to others",
        "chmod 700 {folder}",
    ),
    State(
        "home-not-writable",
        "nothing can be written into the home",
        "a file cannot be made there",
        "ls -ld {home}",
    ),
    State(
        "disk-full",
        "the disk of the home is full, or nearly",
        "a file of 64 KiB cannot be written, or less than 32 MiB are free",
        "df -h {home}",
    ),
    State(
        "log-not-writable",
        "the daemon's log cannot be written",
        "it cannot be opened, or not be made",
        "ls -ld {log}",
    ),
    State(
        "config-invalid",
        "the configuration cannot be used",
        "as the daemon reads it: a value, a key, the file",
        "zotctl config check",
    ),
    State(
        "auth-file",
        "the file with the keys cannot be used",
        "others may read it, or it is not of its form",
        "chmod 600 {file}, when that is what is wrong; else mv {file} {file}.old",
    ),
    State(
        "no-key",
        "no model can be asked, because there is no key",
        "none in the environment, in `auth.json`, from `api_key_command`, nor known to the daemon",
        "zotctl login anthropic",
    ),
    State(
        "database-damaged",
        "the database is damaged",
        "SQLite's quick check, for up to a second",
        "zotctl verify",
    ),
    State(
        "database-newer",
        "a newer zot has written the database",
        "the number of its schema",
        "which -a zotd",
    ),
    State(
        "linger-off",
        "the service ends when you log out",
        "a systemd service is installed, and `loginctl` says that your services do not linger",
        "loginctl enable-linger",
    ),
    State(
        "extension-failing",
        "an extension does not work",
        "what `zotctl ext doctor` finds for this directory",
        "zotctl ext logs {name}",
    ),
    State(
        "extension-doubtful",
        "a tool takes what its function does not expect",
        "`zotctl ext doctor` names a parameter whose type hint no model is told of",
        "zotctl ext reload {name}, when the type hint is mended",
    ),
    State(
        "code-untrusted",
        "extensions of this directory wait for your trust",
        "`zotctl ext doctor` says that their code is new or has changed, and is not run",
        "zotctl trust grant {cwd}",
    ),
    State(
        "port-taken",
        "the WebSocket door is configured and not open",
        "`websocket.listen` is set, and the daemon has no such door",
        "zotctl restart --when-idle",
    ),
    State(
        "slow-check",
        "a check did not end",
        "a check takes over a second: a file system or a program that does not answer",
        "df {home}",
    ),
)

BY_ID = {state.id: state for state in STATES}


def found(state: str, text: str, command: str | None = None, /, **names: object) -> Finding:
    """A finding; `command` when it is another one than the table's, whose `names` are filled in."""
    row = BY_ID[state]
    return Finding(row, text, row.next.format(**names) if command is None else command)
