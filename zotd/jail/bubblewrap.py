"""bubblewrap: a command in namespaces of its own, with another view of the file system.

It hides files and sockets, keeps single files in writable directories from being changed, and has no network but its own
loopback. Each command has its own namespaces, which cost 4 to 6 ms. No root is needed where users may create namespaces.

The command stays in the process group of `bwrap`, and so does the first process of its pid namespace, so signals and
recorded groups work as without a jail; when that process is killed, the kernel ends everything in the namespace, also
what has left the group. `--die-with-parent` is not used: `bwrap` itself ends with the SIGTERM to the group, and would take
the command with it before it could clean up. `--new-session` is not needed: `zotd.process` starts a session without a
terminal.
"""

import functools
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from zotd.jail import handover
from zotd.jail.errors import JailError
from zotd.jail.places import PROGRAMS_IN_RUN, RESOLVER
from zotd.jail.policy import JailPolicy, Network, is_in

PROGRAM = "bwrap"

PROBE_S = 5.0
"""Time limit for `true` in a jail, in seconds; it takes 10 ms."""

_BASE = (
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"),
)

_FOR_ROOT = (
    "--remount-ro",
    "/proc",
    "--cap-add",
    "CAP_CHOWN",
    "--cap-add",
    "CAP_DAC_OVERRIDE",
    "--cap-add",
    "CAP_FOWNER",
)
"""The kernel's settings in /proc/sys belong to root. The capabilities are `landlock.KEPT_CAPABILITIES`: a command of root
works on the files that it sees."""


def command_prefix(
    policy: JailPolicy,
    program: str,
    outlet: str | None = None,
    *,
    is_entered: bool = False,
    starts_in: str | None = None,
) -> list[str]:
    """Return the words in front of a command that run it under `policy`. Blocks for 100 system calls.

    Args:
        policy: what the command may do.
        program: absolute path of `bwrap`.
        outlet: absolute path of a socket of the proxy, if the command is to have the network through it.
        is_entered: whether `bwrap` starts in a network namespace of the command's own, in which the proxy listens.
        starts_in: the directory in which the command starts, if that is not the working directory of the policy. Empty: the
            one that `bwrap` is started in.
    """
    starts_in = policy.cwd if starts_in is None else starts_in
    views = dict(_views(policy))
    if outlet is not None:
        views[outlet] = ("--ro-bind", outlet, outlet)
    # Parents first: a mount covers everything that was mounted below it before.
    mounts = [word for path in sorted(views, key=lambda path: path.count("/")) for word in views[path]]
    empty = [path for path, words in views.items() if words[0] == "--tmpfs"]
    sealed = [word for path in empty for word in ("--remount-ro", path)]  # last: mount points are made in some of them
    return [
        *(program, *_BASE),
        *(_FOR_ROOT if os.geteuid() == 0 else ()),
        *(() if policy.network is Network.OPEN or is_entered else ("--unshare-net",)),
        *(_variables() if is_entered else ()),
        *(word for name, value in policy.variables for word in ("--setenv", name, value)),
        *(*mounts, *sealed, *(("--chdir", starts_in) if starts_in else ()), "--"),
        *(() if outlet is None else (*_handover(), outlet)),
    ]


def check(policy: JailPolicy, program: str) -> None:
    """Run `true` under the policy. Blocks for 10 ms.

    Raises:
        JailError: it did not run, for example because users may not create namespaces here.
    """
    for each in (program, sys.executable) if policy.network is Network.PROXIED else (program,):
        if is_in(os.path.realpath(each), (*policy.writable, *policy.carved)):
            raise JailError(f"{os.path.realpath(each)} is in a directory that commands may change")
    try:
        # Without a process of bwrap's own in the jail, which its parent does not wait for: a daemon would adopt that one, and
        # take it for a child of other code, because it is in the daemon's session (`process.exit.reap_orphans`).
        command = [program, "--as-pid-1", *command_prefix(policy, program)[1:], "true"]
        told = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JailError(f"{program} could not be run: {error}") from error
    if told.returncode:
        lines = told.stderr.decode(errors="replace").strip().splitlines()
        raise JailError(lines[-1] if lines else f"{program} failed with code {told.returncode}")


def limits(policy: JailPolicy) -> list[str]:
    """Return what commands can do under this policy though it should not let them, as clauses."""
    found = ["read a hidden file that is made while they run"]
    if policy.network is Network.OPEN:
        found.append("connect to abstract sockets of your other programs")
    if policy.carved:
        found.append("lead git to another configuration with a file .git/commondir")
    return found


def lacks(policy: JailPolicy) -> list[str]:
    """Return what commands cannot do under this policy though it should let them, as clauses."""
    found = ["see processes of other commands"]
    if policy.network is not Network.OPEN:
        found.append("connect to servers that other commands have started")
    return found


@functools.cache
def _variables() -> tuple[str, ...]:
    return tuple(word for name, value in handover.variables().items() for word in ("--setenv", name, value))


@functools.cache
def _handover() -> tuple[str, ...]:
    """The words that run `handover.py`. The real path of the interpreter: a virtual environment may be writable."""
    return os.path.realpath(sys.executable), "-I", "-S", "-c", Path(handover.__file__).read_text(encoding="utf-8")


def _views(policy: JailPolicy) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the mounts by path; of two with the same path the later one counts."""
    for path in policy.writable:
        if not path.startswith("/dev/"):  # there it has devices and shared memory of its own
            yield path, ("--bind", path, path)
    for path in policy.sockets:
        if path not in policy.writable:
            yield from _emptied(path)
    yield from _seen((*PROGRAMS_IN_RUN, *(RESOLVER if policy.network is Network.OPEN else ())))
    for path in policy.carved:
        yield path, ("--bind", path, path)  # on itself: a mount point cannot be renamed
    for path in policy.protected:
        yield path, ("--ro-bind", path, path)
    for path in policy.hidden:
        yield from _emptied(path)
    yield from _seen(policy.shown)
    for path in policy.own:
        yield path, ("--bind", path, path)


def _seen(paths: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for path in paths:
        if os.path.exists(path):
            yield path, ("--ro-bind", path, path)


def _emptied(path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    try:
        mode = os.lstat(path).st_mode  # one look at each of a hundred paths, most of which are absent
    except OSError:
        return
    yield path, ("--tmpfs", path) if stat.S_ISDIR(mode) else ("--ro-bind", "/dev/null", path)
