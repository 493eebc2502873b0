"""The service under `systemd --user`: a service and a socket unit in the user's own directory."""

import os
import pwd
import sys
from collections.abc import Mapping

from zotctl import service_lookup
from zotctl.service.manager_cli import run, run_checked
from zotctl.service.state import ServiceState
from zotctl.service.templates import template
from zotd.client.atomic_write import write_atomically
from zotd.client.errors import ClientError

SERVICE, SOCKET = service_lookup.UNIT, "zotd.socket"

SYSTEMCTL = ("systemctl", "--user")

LINGER = "/var/lib/systemd/linger"
"""Directory with a file for each user with linger; readable even if logind is not running."""

MANAGES = frozenset({"initializing", "starting", "running", "degraded", "maintenance"})
"""Usable states of the manager; `degraded` means that some unit, not necessarily ours, has failed."""


class Systemd:
    """The systemd user manager."""

    name = "systemd"

    def check(self) -> None:
        """Raise `ClientError` if no user manager is running."""
        _, said = run(*SYSTEMCTL, "is-system-running")
        if said not in MANAGES:
            reason = said.splitlines()[0] if said else "no answer"
            raise ClientError(
                f"no systemd user manager is running ({reason}); log in as this user rather than with su or sudo,"
                " or have your service manager run `zotd`"
            )

    def install(self, environment: Mapping[str, str], socket: str, *, start: bool) -> None:
        """Write, reload and enable the units; with `start`, also start them, or restart them if they changed."""
        folder = service_lookup.folder(os.environ)
        os.makedirs(folder, exist_ok=True)
        written = [
            _write(os.path.join(folder, SERVICE), service(environment)),
            _write(os.path.join(folder, SOCKET), listener(socket)),
        ]
        run_checked(*SYSTEMCTL, "daemon-reload")
        run_checked(*SYSTEMCTL, "enable", "--quiet", SERVICE, SOCKET)
        if start:
            # Earlier failed starts count against the start limit even after the cause is fixed.
            run(*SYSTEMCTL, "reset-failed", SERVICE, SOCKET)
            was_running = self.pid() is not None
            if was_running and any(written):
                run_checked(*SYSTEMCTL, "stop", SERVICE, SOCKET)
            run_checked(*SYSTEMCTL, "start", SOCKET, SERVICE)

    def uninstall(self) -> None:
        """Stop, disable and remove the units, if there are any."""
        if self._files():
            run_checked(*SYSTEMCTL, "disable", "--now", "--quiet", SERVICE, SOCKET)
            for path in self._files():
                os.unlink(path)
            run_checked(*SYSTEMCTL, "daemon-reload")
            run(*SYSTEMCTL, "reset-failed", SERVICE, SOCKET)

    def pid(self) -> int | None:
        """Return the pid of the daemon that systemd started, or None."""
        _, said = run(*SYSTEMCTL, "show", "--property=MainPID", "--value", SERVICE)
        return int(said) if said.isdecimal() and int(said) > 0 else None

    def state(self, unmanaged: int | None) -> ServiceState:
        """Return the state; `unmanaged` is passed on to `ServiceState`."""
        files = self._files()
        units = {name: _active(name) if _path(name) in files else "missing" for name in (SOCKET, SERVICE)}
        lingers = _lingers()
        hints = []
        if files and unmanaged is not None:
            hints.append(
                f"zotctl stop && zotctl service install   (moves the sessions of pid {unmanaged} to the service)"
            )
        if files and lingers is False:
            hints.append("loginctl enable-linger   (keeps the service running without a login)")
        if "failed" in units.values():
            hints.append(f"journalctl --user -u {SERVICE} -n 50   (shows why it failed)")
        return ServiceState(self.name, units, files, self.pid(), unmanaged, lingers, hints)

    def _files(self) -> list[str]:
        return [_path(name) for name in (SOCKET, SERVICE) if os.path.exists(_path(name))]


def service(environment: Mapping[str, str], python: str = sys.executable) -> str:
    """Return the service unit with this interpreter and environment."""
    run = f"ExecStart={_quoted(python)} -P -m zotd"
    places = [f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items()]
    return template(SERVICE).replace("ExecStart=%h/.local/bin/zotd", "\n".join([run, *places]))


def listener(socket: str, env: Mapping[str, str] = os.environ) -> str:
    """Return the socket unit for the path `socket`."""
    usual = os.path.join(env.get("XDG_RUNTIME_DIR", ""), "zot", "zotd.sock")
    path = "%t/zot/zotd.sock" if socket == usual else socket.replace("%", "%%")
    return template(SOCKET).replace("ListenStream=%t/zot/zotd.sock", f"ListenStream={path}")


def _lingers() -> bool | None:
    """Whether linger is on; None if the user has no name, as in some containers, because linger files are named."""
    try:
        return os.path.exists(os.path.join(LINGER, pwd.getpwuid(os.getuid()).pw_name))
    except KeyError:
        return None


def _quoted(word: str) -> str:
    """Quote one word of a unit line (`systemd.syntax(7)`, `systemd.service(5)`)."""
    if "\n" in word:
        raise ClientError("a systemd unit cannot contain a path with a line break")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _path(name: str) -> str:
    return os.path.join(service_lookup.folder(os.environ), name)


def _write(path: str, text: str) -> bool:
    """Write the file and return True, unless it already has this text."""
    if os.path.islink(path):  # made by `systemctl link`; its target is not our file
        os.unlink(path)
    elif os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read() == text:
                return False
    with write_atomically(path) as file:
        file.write(text)
    return True


def _active(name: str) -> str:
    _, said = run(*SYSTEMCTL, "is-active", name)
    return said or "unknown"
