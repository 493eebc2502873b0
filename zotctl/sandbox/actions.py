"""What `zotctl sandbox` does."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from zotctl import output
from zotd.client.errors import ClientError
from zotd.jail import Jail, JailError, Mechanism, find_jail
from zotd.sanitize import one_line


def show(jail: Jail, *, as_json: bool) -> int:
    """Print the policy, and what the mechanism does not keep of it."""
    policy = jail.policy
    hidden, sockets = ([path for path in paths if os.path.lexists(path)] for paths in (policy.hidden, policy.sockets))
    if as_json:
        output.print_json(
            {
                "v": 1,
                "mechanism": jail.mechanism.value,
                "cwd": policy.cwd,
                "network": policy.network,
                "writable": [*policy.writable, *policy.carved],
                "protected": list(policy.protected),
                "hidden": hidden,
                "sockets": sockets,
                "can_although_it_should_not": jail.limits,
                "cannot_although_it_should": jail.lacks,
            }
        )
        return 0
    print(f"mechanism: {one_line(jail.mechanism)}")
    print(f"network: {'allowed' if policy.network else 'refused'}")
    _print_list("commands may change:", [*policy.writable, *policy.carved])
    _print_list("and in there not:", policy.protected)
    _print_list("commands may read everything else but:", hidden)
    _print_list("commands may not connect to what listens in:", sockets)
    _print_list(f"{jail.mechanism} does not keep them from all of it; they can:", jail.limits)
    _print_list("and they cannot, though they should:", jail.lacks)
    return 0


def run(jail: Jail, command: Sequence[str]) -> int:
    """Run the command and return its exit code, or 128 + N after signal N."""
    sys.stderr.write(f"zotctl: in a jail of {one_line(jail.mechanism)}; `zotctl sandbox show` prints what it keeps\n")
    program = shutil.which(command[0])
    if program is None:
        raise ClientError(f"{one_line(command[0])} was not found on PATH")
    sys.stderr.flush()
    try:
        code = _run(jail, [os.path.abspath(program), *command[1:]])
    except (JailError, OSError) as error:
        raise ClientError(f"the command could not be started: {error}") from error
    return code if code >= 0 else 128 - code


def _run(jail: Jail, argv: Sequence[str]) -> int:
    """Run it in a session of its own: without this terminal, into which it could otherwise type (TIOCSTI)."""
    process = jail.start(argv, lambda command: subprocess.Popen(command, start_new_session=True))  # noqa: S603
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)


def jail_here(mechanism: str | None, *, network: bool) -> Jail:
    """Return the jail of the working directory; raises ClientError if none is possible."""
    among = tuple(Mechanism) if mechanism is None else (Mechanism(mechanism),)
    try:
        return find_jail(os.path.realpath(os.getcwd()), os.environ, network=network, among=among)
    except JailError as error:
        raise ClientError(f"no jail is possible here: {error}") from error


def _print_list(title: str, rows: Sequence[str]) -> None:
    if rows:
        print(one_line(title))
        for row in rows:
            print(f"  {one_line(row)}")
