"""`zotctl start`, `zotctl stop` and `zotctl drain`."""

import argparse
import os
import select
import time

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.force_stop import end
from zotd import paths
from zotd.client import place
from zotd.client.errors import ConnectionLostError, NoAnswerError, NotRunningError
from zotd.client.fields import amount, number, strings, text
from zotd.client.lock_owner import lives
from zotd.client.respawn_limit import RespawnLimit
from zotd.sanitize import one_line

STOP_S = 15.0
"""Time limit for a daemon to stop, in seconds; the daemon announces the same to systemd (`zotd.embed.leaving`)."""

EXIT_POLL_S = 0.05
"""Seconds between checks where the system has no pidfd."""


def add(commands: Subparsers) -> None:
    """Register `start`, `stop` and `drain`."""
    start = commands.add_parser("start", help="start the daemon", epilog="example: zotctl start")
    start.add_argument("--json", action="store_true", help="print the result as JSON")
    start.set_defaults(run=_start)
    stop = commands.add_parser("stop", help="stop the daemon", epilog="example: zotctl stop --when-idle")
    how = stop.add_mutually_exclusive_group()
    how.add_argument("--when-idle", action="store_true", help="stop once no run is active; returns immediately")
    how.add_argument(
        "--force", action="store_true", help="kill a daemon that does not answer: SIGTERM, then SIGKILL after 5 s"
    )
    stop.add_argument("--json", action="store_true", help="print the result as JSON")
    stop.set_defaults(run=_stop)
    drain = commands.add_parser(
        "drain",
        help="stop the daemon, and have other daemons of its database go on with what runs",
        epilog="example: zotctl drain",
    )
    drain.add_argument("--json", action="store_true", help="print the result as JSON")
    drain.set_defaults(run=_drain)


def _start(args: argparse.Namespace) -> int:
    # An explicit start ignores the limit on failed starts.
    RespawnLimit(paths.socket_path(os.environ), os.environ).forget()
    with link.connect("zotctl", any_protocol=True) as connection:
        status = connection.call("daemon.status")
    if args.json:
        output.print_json(status)
    else:
        print(one_line(f"zotd is {text(status, 'state')}, pid {number(status, 'pid')}"))
    return 0


def _stop(args: argparse.Namespace) -> int:
    ended = ""
    try:
        state = _shut_down(when_idle=args.when_idle)
    except NotRunningError:
        state = "stopped"  # already the requested state
        ended = end(os.environ) if args.force else ""  # it may run without its socket
    except (NoAnswerError, ConnectionLostError):
        if not args.force:
            raise
        state, ended = "stopped", end(os.environ)
    if args.json:
        output.print_json({"v": 1, "state": state, **({"signal": ended} if ended else {})})
    elif ended:
        print(one_line(f"zotd did not answer and was stopped with {ended}"))
    else:
        print("zotd has stopped" if state == "stopped" else "zotd will stop when no run is active")
    return 0


def _drain(args: argparse.Namespace) -> int:
    stopping = link.connect("zotctl", start=False, role="admin")
    with stopping as connection, output.progress("waiting for the ends of steps"):
        pid = number(connection.call("daemon.status"), "pid")
        draining = connection.call("daemon.drain")
        connection.wait_for_end(amount(draining, "within_s") + STOP_S)
        if not place.of(os.environ).is_remote:
            wait_for_exit(pid)
    if args.json:
        output.print_json({"v": 1, "state": "stopped", "daemons": strings(draining, "daemons")})
    else:
        print(one_line(f"zotd has stopped; what ran goes on in {', '.join(strings(draining, 'daemons'))}"))
    return 0


def _shut_down(*, when_idle: bool) -> str:
    stopping = link.connect("zotctl", start=False, role="admin", any_protocol=True)
    with stopping as connection, output.progress("stopping zotd"):
        pid = number(connection.call("daemon.status"), "pid")
        connection.call("daemon.shutdown", when_idle=when_idle)
        if when_idle:
            return "stopping"
        connection.wait_for_end(STOP_S)
        if not place.of(os.environ).is_remote:
            wait_for_exit(pid)
    return "stopped"


def wait_for_exit(pid: int) -> None:
    """Wait until the process of a stopping daemon has ended; raises `NoAnswerError` after `STOP_S`.

    The daemon closes its connections before it releases its locks, and the next daemon needs the locks.
    """
    deadline = time.monotonic() + STOP_S
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # no pidfd_open
        while not (has_ended := not lives(pid)) and time.monotonic() < deadline:
            time.sleep(EXIT_POLL_S)
    else:
        has_ended = bool(select.select([process], [], [], STOP_S)[0])
        os.close(process)
    if not has_ended:
        raise NoAnswerError(f"zotd (pid {pid}) closed its socket but has not exited after {STOP_S:g} s")
