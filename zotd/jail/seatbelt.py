"""Seatbelt: the sandbox of macOS, by `sandbox-exec` and a profile.

No machine with macOS was at hand when this was written. So a profile is never trusted: before a jail is used, a trial under this very
profile has to be refused everything that it tries and must not be (`check`). Of several rules that match, the last one counts.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from tempfile import NamedTemporaryFile

from zotd import paths
from zotd.jail.errors import JailError
from zotd.jail.policy import JailPolicy, Network, is_in

PROGRAM = "/usr/bin/sandbox-exec"

TRIAL_S = 10.0
"""Time limit for the trial, in seconds."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
"""Devices that commands may write to."""

NAMES = "/private/var/run/mDNSResponder"
"""The socket of name resolution."""

LIMITS = ("ask services of the system by Mach messages, which may do work for them",)
"""What commands can do though the policy should not let them, as clauses."""

_OTHERS = """\
(deny appleevent-send)
(deny job-creation)
(deny lsopen)
(deny mach-priv-task-port)
(deny signal)
(allow signal (target same-sandbox))"""
"""Other ways to have a program outside do the work."""

_TRIAL = """\
import json, os, socket, sys

outside, hidden, temporary, port = sys.argv[1:]

def tried(attempt):
    try:
        attempt()
    except PermissionError:
        return "refused"
    except OSError as error:
        return str(error)
    return "done"

def write(folder):
    path = os.path.join(folder, f".zot-trial-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)

print(json.dumps({
    "write to " + outside: tried(lambda: write(outside)),
    "read " + hidden: tried(lambda: open(hidden, "rb").read()),
    "connect to a port of this machine": tried(lambda: socket.create_connection(("127.0.0.1", int(port)), 5)),
    "write to the temporary directory": tried(lambda: write(temporary)),
}))
"""
"""Tries what has to be refused, and as the last one what must not be."""


def profile(policy: JailPolicy) -> str:
    """Return the rules of a policy in the language of `sandbox-exec`. Blocks for some `stat`."""
    return "\n".join(_rules(policy)) + "\n"


def command_prefix(policy: JailPolicy, program: str) -> list[str]:
    """Return the words in front of a command that run it under `policy`. Blocks for some `stat`."""
    return [program, "-p", profile(policy)]


def check(policy: JailPolicy, program: str, zot_home: str) -> None:
    """Run a trial under the policy. Blocks for about 50 ms.

    Args:
        policy: what the trial is confined to.
        program: absolute path of `sandbox-exec`.
        zot_home: `$ZOT_HOME`, which is hidden; made if it is missing.

    Raises:
        JailError: `program` does not run, or the trial could do something that the policy forbids.
    """
    for each in (program, sys.executable):
        if is_in(os.path.realpath(each), (*policy.writable, *policy.carved)):
            raise JailError(f"{os.path.realpath(each)} is in a directory that commands may change")
    temporary = next((path for path in policy.writable if path != policy.cwd and os.path.isdir(path)), policy.cwd)
    hidden = os.path.realpath(zot_home)
    try:
        paths.make_private_dir(hidden)
        with (
            NamedTemporaryFile(dir=hidden, prefix="trial-") as secret,
            socket.create_server(("127.0.0.1", 0)) as server,
        ):
            words = [os.path.dirname(hidden), secret.name, temporary, str(server.getsockname()[1])]
            argv = [*command_prefix(policy, program), sys.executable, "-I", "-S", "-c", _TRIAL, *words]
            told = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=TRIAL_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JailError(f"{program} could not be run: {error}") from error
    try:
        *forbidden, (allowed, success) = json.loads(told.stdout).items()
    except ValueError:
        lines = told.stderr.decode(errors="replace").strip().splitlines()
        raise JailError(
            f"{program}: {lines[-1]}" if lines else f"{program} failed with code {told.returncode}"
        ) from None
    if policy.network is Network.OPEN:
        forbidden.pop()
    for attempt, outcome in forbidden:
        if outcome != "refused":
            raise JailError(f"{program} did not keep a trial from it, so it is not used: {attempt}")
    if success != "done":
        raise JailError(f"{program} kept a trial from it, so it is not used: {allowed} ({success})")


def lacks(policy: JailPolicy) -> list[str]:
    """Return what commands cannot do under this policy though it should let them, as clauses."""
    found = ["open windows and other programs"]
    if policy.network is not Network.OPEN:
        found.append("listen on ports of this machine, or connect to them")
    if policy.network is Network.PROXIED:
        found.append("reach any host, because the proxy is for bubblewrap only")
    return found


def _rules(policy: JailPolicy) -> Iterator[str]:
    yield "(version 1)\n(allow default)"
    yield from _rule("deny", "file-write*", ["/"])
    yield from _rule("allow", "file-write*", [*DEVICES, *policy.writable, *policy.carved])
    yield from _rule("deny", "file-write*", policy.protected)
    yield from _rule("deny", "file-read* file-write*", policy.hidden)
    yield from _rule("allow", "file-read*", policy.shown)
    yield from _rule("allow", "file-read* file-write*", policy.own)
    if policy.network is Network.OPEN:
        yield f"(deny network-outbound (remote unix-socket))\n(allow network-outbound (literal {_quoted(NAMES)}))"
    else:
        yield "(deny network*)"
    yield _OTHERS


def _rule(decision: str, operations: str, paths: Iterable[str]) -> Iterator[str]:
    """Yield a rule for files and directories, which need not exist; none without paths."""
    # `subpath` matches a file as well; one that is made later is covered by the same rule.
    filters = " ".join(f"(subpath {_quoted(path)})" for path in paths)
    if filters:
        yield f"({decision} {operations} {filters})"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
