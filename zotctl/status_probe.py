"""Determines the state of the daemon and the command to run next, in bounded time.

`running` · `mismatched` (another version) · `unmanaged` (not started by the installed service, or vice versa) ·
`stopping` · `starting` · `stopped` · `stale` (killed, socket left over) · `listener_lost` (running, but its socket is
gone or another process's) · `wedged` (no answer) · `unreachable` (another user's socket, or no access).

Asks the daemon through its socket; if that fails, reads who holds the lock files, without taking them. Imports as little
as `zotctl ping`.
"""

import os
import stat
from collections.abc import Callable, Mapping

from zotctl import service_lookup
from zotd import paths
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError, ConnectionLostError, NoAnswerError, NotRunningError
from zotd.client.lock_owner import lock_owner_of, state_letter
from zotd.client.version_mismatch import advice
from zotd.wire.version import VERSION, agreed, is_newer, protocols, refusal

CONNECT_S = 0.5
ANSWER_S = 2.0
"""Time limits in seconds. Together with the start of the program they stay below 3 s."""

FIELDS = (
    *("pid", "version", "protocol", "protocols", "service", "epoch", "uptime_s"),
    *("sessions", "running", "clients", "extensions", "websocket"),
)
"""Fields of the daemon's own status; null in the JSON if it does not answer."""

HOME_LOCK = "zotd.lock"
"""Name of the lock file in `$ZOT_HOME`, held by the daemon of that home."""

RESTART = "zotctl restart --when-idle"
"""Also right for a daemon that is stopping: waits until it has stopped, then starts the next."""

FORCE = "zotctl stop --force && zotctl start"
"""The commands that replace a daemon that does not answer."""

LISTENING = "00010000"
"""The flags of a listening socket in `/proc/net/unix`."""

Open = Callable[[], Connection]
"""Opens a connection; raises `ClientError`."""


def probe(
    path: str, env: Mapping[str, str], connect: Open, answer_s: float = ANSWER_S, *, activates: bool = False
) -> Json:
    """Return the status as `zotctl status --json` prints it; `error` is present if the daemon cannot be used.

    Args:
        path: the socket, or the URL of a remote daemon, whose processes and locks cannot be examined.
        env: says where the daemon's files are.
        connect: opens a connection within its own time limit.
        answer_s: time limit for the answer, in seconds.
        activates: connect even if systemd would start the daemon because of it; the answer may then take as long as
            any other start.
    """
    status: Json = {"v": 1, "state": "stopped", "socket": path, **dict.fromkeys(FIELDS), "warnings": [], "next": None}
    is_start = is_activated(path, env)
    if is_start and not activates:
        sentence = f"zotd is not running; systemd listens at {path} and starts it when a client connects"
        return status | {"error": sentence, "next": "zotctl start"}
    listener: int | None = None
    try:
        with connect() as connection:
            listener = connection.server_pid
            status.update(connection.call("daemon.status", timeout_s=_start_s() if is_start else answer_s), socket=path)
    except ClientError as error:
        return status | _failed(error, listener, path, env)
    return status | _answered(status, path, env)


def _answered(status: Json, path: str, env: Mapping[str, str]) -> Json:
    owner = None if env.get("ZOTD_SOCKET") else _owner(path, env)  # that socket may belong to another home
    if owner not in {None, status["pid"]}:
        sentence = f"another zotd (pid {status['pid']}) answers at {path} instead of the one for {paths.zot_home(env)}"
        return {"state": "listener_lost", "pid": owner, "error": sentence, "next": f"kill {status['pid']}"}
    if status["state"] != "running":
        return {"next": None if _is_remote(path) else RESTART}
    if status["version"] != VERSION or status["protocol"] != protocols()[1]:
        return _of_another_version(status) | ({"next": None} if _is_remote(path) else {})
    trouble, command = ("", "") if _is_remote(path) else service_lookup.disagreement(status["service"], env)
    return {"state": "unmanaged", "warnings": _add_warning(status, trouble), "next": command} if trouble else {}


def _failed(error: ClientError, listener: int | None, path: str, env: Mapping[str, str]) -> Json:
    """The status without an answer. `listener` is the pid that listens, if known; systemd's with socket activation."""
    has_no_listener = isinstance(error, NotRunningError | ConnectionLostError)
    if not has_no_listener and not isinstance(error, NoAnswerError):
        return {"state": "unreachable", "error": str(error), "next": None if _is_remote(path) else "zotctl doctor"}
    if _is_remote(path):
        return {"state": "stopped" if has_no_listener else "wedged", "error": str(error)}
    return _no_listener(path, env, error) if has_no_listener else _no_answer(listener, path, env, error)


def _of_another_version(status: Json) -> Json:
    version, theirs = str(status["version"]), _range(status)
    line = advice(status) or f"zotd speaks protocol {status['protocol']}, this program {protocols()[1]}: {RESTART}"
    found: Json = {"state": "mismatched", "warnings": _add_warning(status, line)}
    found["next"] = "which -a zotctl" if is_newer(version, VERSION) else RESTART
    if agreed(protocols(), theirs) is None:
        found["error"] = refusal(f"this program ({VERSION})", protocols(), theirs, version)
    return found


def _range(status: Json) -> tuple[int, int]:
    """Return the oldest and newest protocol of the daemon; older daemons report a single one."""
    spoken = status["protocols"]
    match spoken:
        case [int() as oldest, int() as newest]:
            return oldest, newest
        case _:
            only = status["protocol"]
            return (only, only) if isinstance(only, int) else (0, 0)


def _add_warning(status: Json, line: str) -> list[object]:
    warnings = status["warnings"]
    return [*(warnings if isinstance(warnings, list) else []), line]


def _no_listener(path: str, env: Mapping[str, str], error: ClientError) -> Json:
    """The status if no process listens at `path`."""
    owner = _owner(path, env)
    if owner is not None:
        if _is_being_started(path):
            sentence = f"{error} yet; it is starting"
            return {"state": "starting", "pid": owner, "error": sentence, "next": "zotctl status"}
        sentence = f"zotd (pid {owner}) is running, but its socket {path} is gone"
        return {"state": "listener_lost", "pid": owner, "error": sentence, "next": f"kill -USR1 {owner}"}
    try:
        found = os.lstat(path)
    except OSError:
        return {"state": "stopped", "error": str(error), "next": "zotctl start"}
    if not stat.S_ISSOCK(found.st_mode):
        return {
            "state": "unreachable",
            "error": f"{path} is not a socket; move it away",
            "next": f"mv {path} {path}.old",
        }
    sentence = f"zotd was killed and left its socket {path} behind"
    return {"state": "stale", "error": sentence, "next": "zotctl start"}


def _no_answer(listener: int | None, path: str, env: Mapping[str, str], error: ClientError) -> Json:
    """The status if a process listens at `path` but does not answer."""
    owner = _owner(path, env)
    pid = owner or listener
    if owner and listener and listener != owner and not env.get("ZOTD_SOCKET") and _is_program(listener):
        sentence = f"pid {listener} listens at {path} instead of the zotd for {paths.zot_home(env)} (pid {owner})"
        return {"state": "listener_lost", "pid": owner, "error": sentence, "next": f"kill {listener}"}
    wedged: Json = {"state": "wedged", "pid": pid, "error": str(error), "next": "zotctl doctor"}
    if pid is not None:
        stopped = state_letter(pid) in {"T", "t"}
        if stopped:
            wedged["error"] = f"{error}: its process {pid} was stopped by a signal"
        wedged["next"] = f"kill -CONT {pid}" if stopped else FORCE
    return wedged


def with_advice(error: ClientError, listener: int | None, path: str, env: Mapping[str, str]) -> str:
    """Return the message of `error` with the pid of the daemon that does not answer and the command to run."""
    if _is_remote(path):
        return str(error)
    found = _no_answer(listener, path, env, error)
    if found["state"] == "listener_lost":
        return f"{found['error']}; run `{found['next']}`"
    pid = found["pid"]
    if found["next"] == FORCE:
        return f"{error} (pid {pid}); run `{FORCE}` to replace it"
    if pid is None:
        return f"{error}; run `{found['next']}`"
    return f"{found['error']}; run `{found['next']}` to resume it, or `{FORCE}` to replace it"


def _owner(path: str, env: Mapping[str, str]) -> int | None:
    """Return the pid of the daemon of this home; None if none runs, or for a remote daemon."""
    return None if _is_remote(path) else lock_owner_of(os.path.join(paths.zot_home(env), HOME_LOCK))


def is_activated(path: str, env: Mapping[str, str]) -> bool:
    """Whether no daemon runs and systemd listens at the socket, so that connecting would start the daemon."""
    if env.get("ZOTD_SOCKET") or _is_remote(path) or _owner(path, env) is not None:
        return False
    service = service_lookup.installed(env)
    return service is not None and service.endswith(service_lookup.UNIT) and _has_listener(path)


def _has_listener(path: str) -> bool:
    """Whether a process listens at a Unix socket; False on systems without `/proc/net/unix`."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split(maxsplit=7) for line in file]
    except OSError:
        return False
    return any(len(row) == 8 and row[3] == LISTENING and row[7] == path for row in rows)


def _is_remote(path: str) -> bool:
    return "://" in path


def _is_program(pid: int) -> bool:
    """Whether the process exists and is not systemd, which listens on behalf of the daemon."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip() != "systemd"
    except OSError:
        return False


def _start_s() -> float:
    """Time limit in seconds for a daemon that systemd starts now, while its clients wait in the socket's queue."""
    from zotd.client.autostart import READY_CAP_S  # noqa: PLC0415  (3 ms, rarely needed)

    return READY_CAP_S


def _is_being_started(path: str) -> bool:
    from zotd.client.autostart import is_being_started  # noqa: PLC0415  (3 ms, rarely needed)

    return is_being_started(path)
