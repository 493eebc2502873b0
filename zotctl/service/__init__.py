"""`zotctl service`: the daemon as a service of this user, with systemd or launchd (`docs/service.md`)."""

import argparse
import os
import shutil

from zotctl import output, status_probe
from zotctl.commands import Subparsers
from zotctl.service import launchd, systemd
from zotctl.service.state import ServiceState
from zotd import paths
from zotd.client.errors import ClientError
from zotd.client.lock_owner import lock_owner_of
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl service install      write, enable and start the units
  zotctl service status
  zotctl service uninstall    keeps sessions, configuration and keys

The service starts when you log in (with linger, when the machine boots), is restarted when it fails, and does not exit
when idle. ZOT_HOME, ZOTD_SOCKET and XDG_STATE_HOME are copied into the unit.
"""

Manager = systemd.Systemd | launchd.Launchd

ENVIRONMENT = ("ZOT_HOME", "ZOTD_SOCKET", "XDG_STATE_HOME")
"""Variables copied into the unit, so that the service uses the same paths as the clients."""

NO_MANAGER = "found neither systemd nor launchd; have your service manager run `zotd`, which stays in the foreground"


def add(commands: Subparsers) -> None:
    """Register `service` and its actions."""
    parser = commands.add_parser("service", help="run the daemon as a service of systemd or launchd", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name, summary, run in (
        ("install", "write, enable and start the units", _install),
        ("uninstall", "stop the service and remove its units", _uninstall),
        ("status", "show the state of the service", _status),
    ):
        action = actions.add_parser(name, help=summary, epilog=f"example: zotctl service {name} --json")
        action.add_argument("--json", action="store_true", help="print the result as JSON")
        action.set_defaults(run=run)


def _install(args: argparse.Namespace) -> int:
    manager = _manager()
    manager.check()
    running = _unmanaged(manager)
    manager.install(_environment(), paths.socket_path(os.environ), start=running is None)
    return _show(args, manager.state(running))


def _uninstall(args: argparse.Namespace) -> int:
    manager = _manager()
    manager.check()
    manager.uninstall()
    return _show(args, manager.state(_unmanaged(manager)))


def _status(args: argparse.Namespace) -> int:
    manager = _manager()
    manager.check()
    state = manager.state(_unmanaged(manager))
    _show(args, state)
    return 0 if state.is_sound else 1


def _manager() -> Manager:
    """Return the service manager of this machine; raises `ClientError` if it has none of the supported ones."""
    if shutil.which("launchctl"):
        return launchd.Launchd()
    if shutil.which("systemctl"):
        return systemd.Systemd()
    raise ClientError(NO_MANAGER)


def _environment() -> dict[str, str]:
    return {name: os.path.abspath(os.environ[name]) for name in ENVIRONMENT if os.environ.get(name)}


def _unmanaged(manager: Manager) -> int | None:
    """Return the pid of a daemon that holds the home or socket lock but was not started by `manager`, or None."""
    locks = os.path.join(paths.zot_home(os.environ), status_probe.HOME_LOCK), f"{paths.socket_path(os.environ)}.lock"
    pid = next(filter(None, map(lock_owner_of, locks)), None)
    return None if pid is None or manager.pid() == pid else pid


def _show(args: argparse.Namespace, state: ServiceState) -> int:
    if args.json:
        output.print_json(state.fields())
        return 0
    for name, words in state.lines():
        print(one_line(f"{name:12} {words}"))
    for hint in state.hints:
        print(one_line(f"{'to do':12} {hint}"))
    return 0
