"""The service under launchd: an agent in the user's own directory.

launchd hands over a socket only through its C library, so the daemon creates its own. Unlike with systemd, connections
during a restart are refused.
"""

import os
import plistlib
import re
import sys
from collections.abc import Mapping

from zotctl.service.manager_cli import run, run_checked
from zotctl.service.state import ServiceState
from zotctl.service.templates import template
from zotd.client.atomic_write import write_atomically
from zotd.client.errors import ClientError

LABEL = "dev.zot.zotd"

FILE = f"{LABEL}.plist"

_PID = re.compile(r"^\s*pid = (\d+)$", re.MULTILINE)


class Launchd:
    """The launchd domain of the user's login session."""

    name = "launchd"

    def check(self) -> None:
        """Raise `ClientError` if there is no GUI session."""
        code, said = run("launchctl", "print", _domain())
        if code != 0:
            raise ClientError(f"launchd has no GUI session for this user ({said}); log in at the screen first")

    def install(self, environment: Mapping[str, str], socket: str, *, start: bool) -> None:
        """Write the agent; with `start`, also (re)start it. `socket` is unused: the daemon creates it."""
        del socket
        path = _path()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with write_atomically(path) as file:
            file.write(agent(environment).decode())
        if start:
            run("launchctl", "bootout", f"{_domain()}/{LABEL}")  # fails if it is not running
            run_checked("launchctl", "bootstrap", _domain(), path)

    def uninstall(self) -> None:
        """Stop and remove the agent, if there is one."""
        if os.path.exists(_path()):
            run("launchctl", "bootout", f"{_domain()}/{LABEL}")
            os.unlink(_path())

    def pid(self) -> int | None:
        """Return the pid of the daemon that launchd started, or None."""
        code, said = run("launchctl", "print", f"{_domain()}/{LABEL}")
        found = _PID.search(said) if code == 0 else None
        return int(found[1]) if found else None

    def state(self, unmanaged: int | None) -> ServiceState:
        """Return the state; `unmanaged` is passed on to `ServiceState`."""
        files = [_path()] if os.path.exists(_path()) else []
        pid = self.pid()
        running = "active" if pid is not None else "inactive"
        hints = []
        if files and unmanaged is not None:
            hints.append(
                f"zotctl stop && zotctl service install   (moves the sessions of pid {unmanaged} to the service)"
            )
        return ServiceState(self.name, {LABEL: running if files else "missing"}, files, pid, unmanaged, None, hints)


def agent(environment: Mapping[str, str], python: str = sys.executable) -> bytes:
    """Return the agent as a property list, with this interpreter and environment."""
    found: dict[str, object] = plistlib.loads(template(FILE).encode())
    found["ProgramArguments"] = [python, "-P", "-m", "zotd"]
    found["EnvironmentVariables"] = dict(environment)
    return plistlib.dumps(found)


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _path() -> str:
    return os.path.join(os.path.expanduser("~"), "Library", "LaunchAgents", FILE)
