"""The installed commands: each runs its program by a template process, which the first of them starts.

There is one template process for each user, installation and set of the variables that the interpreter reads. Where it
does not serve a command, the command imports its program itself, as if there were none.

Only built-in modules and `zotd.paths` are imported here, for the reason that `zotd.template.thin` has.
"""

import _imp
import os
import sys

from zotd import paths
from zotd.template import thin

SWITCH = "ZOT_TEMPLATE"
"""With the value `off` every program imports its modules itself."""

IDLE_S = 1800
"""A template process without a program ends after this time, and the next command starts another one."""

MODULES = ("zotd.cli", "zotd.embed.rpc", "zotctl.__main__")
PACKAGES = ("zotctl", "zottui")
"""What the template process imports: modules, and packages with all their modules."""

REHEARSALS = ("zotd.embed.rehearsal", "zotctl.rehearsal", "zottui.rehearsal")
"""Modules whose `rehearse` does once what each program does when it starts."""

COLD = frozenset({"top", "ping", "status"})
"""Commands that start cold: `zotctl top` handles Ctrl-Z itself and must therefore be in the terminal's session; the others
import so little that a fork takes longer."""

PASSED = frozenset(
    ["HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "USER"]
)
"""Variables that the template process gets, besides those of the interpreter. Each program has its client's own, but
/proc/PID/environ shows these to the user's other processes; keys are not among them."""

VERSION_FLAGS = (["-v"], ["--version"])
INFO_FLAGS = frozenset({"-h", "--help", "-v", "--version"})
"""Flags for which no template process is started: somebody looks at the program and may not use it."""


def zot() -> int:
    """Run `zot` with the arguments of the command line; return its exit code."""
    return _run("zot", "zotd.cli")


def zottui() -> int:
    """Run `zottui` with the arguments of the command line; return its exit code."""
    return _run("zot", "zottui.__main__")


def zotctl() -> int:
    """Run `zotctl` with the arguments of the command line; return its exit code."""
    return _run("zotctl", "zotctl.__main__")


def socket_path() -> str:
    """Return where the template process listens that serves this process's environment.

    Raises:
        UnsafePathError: the directory of the sockets is not private, or its path is too long.
        OSError: there is no /proc.
    """
    folder = paths.runtime_dir(os.environ)
    paths.check_private_dir(folder)
    path = os.path.join(folder, f"template-{_digest()}.sock")
    if len(os.fsencode(path)) > paths.MAX_SOCKET_PATH:
        raise paths.UnsafePathError(f"{path} is too long for a socket")
    return path


def _run(name: str, module: str) -> int:
    words = sys.argv[1:]
    if words in VERSION_FLAGS and _has_shown_version(name):
        return 0
    path = _socket_for(words)
    if path is not None:
        try:
            os._exit(thin.run(path, [module, *words]))  # nothing is left to do; the interpreter would take 3 ms for it
        except thin.NoServerError:
            if INFO_FLAGS.isdisjoint(words):
                _try_to_start(path)
        except thin.NotStartedError:
            pass
    __import__(module)
    return int(sys.modules[module].main() or 0)


def _socket_for(words: "list[str]") -> "str | None":
    """Return the socket of the template process; None if a program with these arguments must start cold."""
    is_off = os.environ.get(SWITCH) == "off"
    # Of what a daemon starts it has to see that it is its parent, or else such a program could approve its own calls.
    if sys.platform != "linux" or is_off or thin.ORIGIN in os.environ or not COLD.isdisjoint(words):
        return None
    try:
        return socket_path()
    except (paths.UnsafePathError, OSError):
        return None


def _has_shown_version(name: str) -> bool:
    """Print the version. If that fails, the program is left to say why."""
    from zotd.wire.version import VERSION  # noqa: PLC0415  (only for this flag)

    try:
        os.write(1, f"{name} {VERSION}\n".encode())
    except OSError:
        return False
    return True


def _digest() -> str:
    """Return what only programs share that one template process can serve: 16 hexadecimal digits."""
    installation = [sys.executable, sys.version, __file__]
    namespaces = [os.readlink(f"/proc/self/ns/{name}") for name in thin.NAMESPACES]  # of containers with one home
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if _is_of_interpreter(name))
    packed = "\0".join([*installation, *namespaces, *variables]).encode("utf-8", "surrogateescape")
    return _imp.source_hash(0, packed).hex()  # a built-in SipHash; `hashlib` takes longer to import than a fork takes


def _is_of_interpreter(name: str) -> bool:
    return name.startswith(thin.INTERPRETER) and name not in thin.HARMLESS


def _try_to_start(path: str) -> None:
    """Start the template process, unless another command is doing so. Returns in 2 ms; it serves in 2 s."""
    try:
        if not _is_starting(path):
            _start(path, ",".join(map(str, _ancestors())))
    except OSError:  # no descriptor or no process is left; the program itself will say so, if it needs one
        pass


def _start(path: str, ancestors: str) -> None:
    child = os.fork()
    if child:
        try:  # noqa: SIM105  (contextlib is not imported here)
            os.waitpid(child, 0)
        except ChildProcessError:  # SIGCHLD is ignored
            pass
        return
    try:  # in a session of its own, and as a child of init, because this process may look at its children
        os.setsid()
        if os.fork() == 0:
            _become_template(path, ancestors)
    finally:
        os._exit(0)


def _is_starting(path: str) -> bool:
    import fcntl  # noqa: PLC0415  (only where there is no template process)

    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _become_template(path: str, ancestors: str) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    environment = {
        name: value for name, value in os.environ.items() if name in PASSED or name.startswith(thin.INTERPRETER)
    }
    packages = [word for package in PACKAGES for word in ("--all-of", package)]
    rehearsals = [word for module in REHEARSALS for word in ("--rehearse", module)]
    options = ["--idle", str(IDLE_S), "--ancestors", ancestors, *rehearsals, *packages]
    # -P: the current directory is no place to import from.
    server = [sys.executable, "-P", "-m", "zotd.template.server", *options, path, *MODULES]
    os.execve(sys.executable, server, environment)  # noqa: S606  (our own program)


def _ancestors() -> "list[int]":
    """Return the processes above this command, which the template process itself has not above it."""
    found = []
    pid = os.getppid()
    while pid > 0:
        found.append(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            break
    return found
