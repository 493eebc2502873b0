"""`zotctl restart`: replaces the daemon by the one of this installation, or of the installed service.

    daemon.shutdown -> it closes our connection -> take the start lock -> it exits -> start -> hello

The start lock keeps other clients from starting a daemon in between; attached clients reconnect by themselves. Kills
nothing: if the daemon does not answer, the error names `zotctl stop --force`.
"""

import argparse
import os
import socket
import sys
from contextlib import suppress

from zotctl import config, output, service_lookup, status_probe
from zotctl.commands import Subparsers
from zotctl.daemon import STOP_S, wait_for_exit
from zotctl.service.manager_cli import run_checked
from zotd import paths
from zotd.client import autostart
from zotd.client.blocking import CONNECT_S, Connection, Json, open_socket
from zotd.client.errors import ConnectionLostError, NoAnswerError, NotRunningError
from zotd.client.fields import number, text
from zotd.client.humanize import counted
from zotd.client.options import hello
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl restart --when-idle          after an update: wait for active runs
  zotctl restart                      interrupt active runs; `zotctl continue` resumes them

Ctrl-C stops the wait, not the restart: the daemon still exits when no run is active, and the next command that needs
one starts it. An installed service is started by its service manager.
"""


def add(commands: Subparsers) -> None:
    """Register `restart`."""
    parser = commands.add_parser("restart", help="restart the daemon", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--when-idle", action="store_true", help="wait until no run is active")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_restart)


def _restart(args: argparse.Namespace) -> int:
    path = paths.socket_path(os.environ)
    config.load()  # an invalid configuration must not stop the running daemon
    before: Json | None = None
    with suppress(NotRunningError):  # nothing to stop
        before = _ended(path, when_idle=args.when_idle)
    with autostart.held_up(path), output.progress("starting zotd"):
        if before is not None:
            wait_for_exit(number(before, "pid"))
        connection = Connection(_started(path, before))
    with connection:
        now = hello(connection, "zotctl", any_protocol=True)
    _tell(args, before, now)
    return 0


def _ended(path: str, *, when_idle: bool) -> Json:
    """Shut the daemon down and return its last status; its process may still be exiting."""
    with Connection(open_socket(path)) as connection:
        try:
            status = connection.call("daemon.status", timeout_s=status_probe.ANSWER_S)
        except NoAnswerError as error:
            raise NoAnswerError(status_probe.with_advice(error, connection.server_pid, path, os.environ)) from error
        hello(connection, "zotctl", role="admin", any_protocol=True)
        connection.call("subscribe", topics=["sessions"])
        connection.call("daemon.shutdown", when_idle=when_idle)
        if when_idle:
            _wait_for_idle(connection)
        else:
            with output.progress("stopping zotd"):
                connection.wait_for_end(STOP_S)
    return status


def _wait_for_idle(connection: Connection) -> None:
    """Wait until the daemon closes the connection, and report the number of active sessions when it changes."""
    try:
        _show_what_runs(connection)
    except ConnectionLostError:
        return
    except KeyboardInterrupt:
        sys.stderr.write("zotctl: zotd still stops when no run is active; the next command starts it again\n")
        raise


def _show_what_runs(connection: Connection) -> None:
    shown = 0
    while True:  # ends with ConnectionLostError
        running = number(connection.call("daemon.status"), "running")
        if running not in {0, shown}:
            sys.stderr.write(
                one_line(f"waiting for {counted(running, 'active session')} (Ctrl-C stops waiting)") + "\n"
            )
        shown = running
        next(connection.events())


def _started(path: str, before: Json | None) -> socket.socket:
    """Start the next daemon and return a socket connected to it."""
    file = service_lookup.installed(os.environ)
    if file is None and (before is None or before.get("service") is None):
        return autostart.start(path, os.environ)
    run_checked(*service_lookup.start_command(file, os.getuid()))
    return open_socket(path, CONNECT_S)


def _tell(args: argparse.Namespace, before: Json | None, now: Json) -> None:
    if args.json:
        old = None if before is None else {name: before.get(name) for name in ("pid", "version")}
        output.print_json({"v": 1, "state": "running", "pid": now["pid"], "version": now["version"], "before": old})
        return
    changed = "" if before is None or before.get("version") == now["version"] else f", was {text(before, 'version')}"
    print(one_line(f"zotd {text(now, 'version')} is running, pid {number(now, 'pid')}{changed}"))
