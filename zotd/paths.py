"""Where files live (`docs/protocol.md`): the daemon and its clients find the same places in the same environment.

Each function takes the environment as a mapping. Loads nothing that a bare interpreter has not loaded already:
`zotctl ping` pays for every import.
"""

import os
import stat
import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SOCKET_PATH = 103
"""Longest socket path in bytes: macOS has room for 104 with the closing NUL, Linux for 108."""

PRIVATE = 0o700
"""Mode of every directory that is made here."""

_HASH_DIGITS = 16
"""64 bits of a path's digest: two homes of one user never meet."""


class UnsafePathError(Exception):
    """A directory is not as private as it must be; the message is one sentence that names it."""


def zot_home(env: "Mapping[str, str]") -> str:
    """The absolute directory of everything that is kept: database, configuration, logs. It may not exist yet.

    A relative `$XDG_STATE_HOME` counts as unset, as the XDG specification wants it.
    """
    home = env.get("ZOT_HOME")
    if home:
        return os.path.abspath(home)
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return os.path.join(state, "zot")
    user = env.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "zot")
    return os.path.join(user, ".local", "state", "zot")


def socket_path(env: "Mapping[str, str]") -> str:
    """The absolute path of the daemon's socket, at most `MAX_SOCKET_PATH` bytes long.

    `$ZOTD_SOCKET`; else `run/zotd.sock` in `$ZOT_HOME` when that is set; else `zotd.sock` in `runtime_dir`. Where that
    is a temporary directory, which all homes of a user share, a home other than the user's own has a name made of its
    digest. What is too long for a socket becomes a name made of its digest, in `runtime_dir`.
    """
    path = _wanted_socket(env)
    return path if _fits(path) else _hashed_socket(path, env)


def runtime_dir(env: "Mapping[str, str]") -> str:
    """The user's own directory for sockets; it may not exist yet.

    `$XDG_RUNTIME_DIR/zot`, unless that variable is relative or names no directory of this user (cron, `sudo -E`):
    then `zot-UID` in `$TMPDIR`, and when that is no directory either, in `/tmp`.
    """
    return _runtime_dirs(env)[0]


def outlet_dir(env: "Mapping[str, str]") -> str:
    """The user's own directory for the sockets of outlets (`zotd.proxy`); it may not exist yet.

    `$ZOTD_OUTLETS`, with which the daemon names its own to the jails of clients whose environment would lead elsewhere;
    else `runtime_dir`, or the next one in which the path of a socket is short enough.
    """
    if given := env.get("ZOTD_OUTLETS"):
        return given
    folders = [os.path.join(folder, "outlets") for folder in _runtime_dirs(env)]
    return next((folder for folder in folders if _fits(os.path.join(folder, _HASH_DIGITS * "0"))), folders[-1])


def channels_dir(env: "Mapping[str, str]") -> str:
    """The absolute directory in which sessions of messaging channels work by default; it may not exist yet.

    It is outside of `zot_home`, which jails hide. A relative `$XDG_DATA_HOME` counts as unset.
    """
    data = env.get("XDG_DATA_HOME", "")
    if os.path.isabs(data):
        return os.path.join(data, "zot", "channels")
    user = env.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "zot-channels")
    return os.path.join(user, ".local", "share", "zot", "channels")


def start_lock(socket: str) -> str:
    """The file that a client locks while it starts the daemon of `socket`."""
    return os.path.join(os.path.dirname(socket), "start.lock")


def start_log(env: "Mapping[str, str]") -> str:
    """What a daemon says on its standard error when a client has started it."""
    return os.path.join(zot_home(env), "logs", "start.log")


def check_text(path: str) -> None:
    """Raise UnsafePathError unless `path` is UTF-8: one that is not cannot be said in an answer, a log or a unit."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = path.encode(errors="backslashreplace").decode()
        raise UnsafePathError(f"{shown} is not UTF-8: choose another place with ZOT_HOME") from error


def check_private_dir(path: str) -> None:
    """Make sure that `path` is a directory that only this user can enter; create it if it is missing.

    Parents that are missing are made with mode 0700 too. What exists is never changed, only judged.

    Raises:
        UnsafePathError: it is a symbolic link, not a directory, of another user, open to others, or cannot be created.
    """
    try:
        make_private_dir(path)
        found = os.lstat(path)
    except OSError as error:
        raise UnsafePathError(f"cannot create the directory {path}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a directory"
        raise UnsafePathError(f"{path} is {what}: remove it, or choose another place with ZOT_HOME")
    if found.st_uid != os.geteuid():
        raise UnsafePathError(f"{path} belongs to user {found.st_uid}: choose another place with ZOT_HOME")
    if found.st_mode & 0o077:
        raise UnsafePathError(f"{path} is open to other users; run `chmod 700 {path}`")


def make_private_dir(path: str) -> None:
    """Make the directory `path` and its missing parents with mode 0700; an existing one is left as it is.

    Raises `OSError` when it cannot be made.
    """
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_private_dir(os.path.dirname(path))  # os.makedirs would give parents the umask's mode
        make_private_dir(path)


def _wanted_socket(env: "Mapping[str, str]") -> str:
    chosen = env.get("ZOTD_SOCKET")
    if chosen:
        return os.path.abspath(chosen)
    if env.get("ZOT_HOME"):
        return os.path.join(zot_home(env), "run", "zotd.sock")
    if _session_dir(env) is not None or _is_users_own(zot_home(env)):
        return os.path.join(runtime_dir(env), "zotd.sock")
    return os.path.join(runtime_dir(env), f"{_digest(zot_home(env))}.sock")


def _fits(path: str) -> bool:
    return len(os.fsencode(path)) <= MAX_SOCKET_PATH


def _hashed_socket(path: str, env: "Mapping[str, str]") -> str:
    names = [os.path.join(folder, f"{_digest(path)}.sock") for folder in _runtime_dirs(env)]
    return next(filter(_fits, names), names[-1])


def _digest(path: str) -> str:
    import hashlib  # noqa: PLC0415  (2 ms that only unusual places have to pay)

    # The real path, so that two spellings of one place meet.
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:_HASH_DIGITS]


def _is_users_own(home: str) -> bool:
    """Whether the home is the one that the user has without any variable."""
    import pwd  # noqa: PLC0415  (only where there is no runtime directory)

    try:
        user = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a container with a uid of its own
        return False
    return home == zot_home({"HOME": user})


def _session_dir(env: "Mapping[str, str]") -> str | None:
    """`$XDG_RUNTIME_DIR`, when it can be used."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    return runtime if os.path.isabs(runtime) and _is_mine(runtime) else None


def _runtime_dirs(env: "Mapping[str, str]") -> list[str]:
    """Best first; the last one is always short enough."""
    folders = []
    runtime = _session_dir(env)
    if runtime is not None:
        folders.append(os.path.join(runtime, "zot"))
    mine = f"zot-{os.geteuid()}"
    temporary = env.get("TMPDIR", "")
    if os.path.isabs(temporary) and os.path.isdir(temporary):
        folders.append(os.path.join(temporary, mine))
    folders.append(os.path.join("/tmp", mine))  # noqa: S108  (check_private_dir refuses one that is not ours)
    return folders


def _is_mine(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
