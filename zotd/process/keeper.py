"""Tells whether a service manager runs the daemon. If one does, a restart has to go through it."""

from collections.abc import Mapping


def keeper(env: Mapping[str, str], pid: int) -> str | None:
    """Return `systemd` or `launchd` if it started the process `pid` with the environment `env`, else None.

    Ignores variables that a terminal inherits from its own service: systemd (since version 248) names the pid that it
    started, and launchd sets the service name to `0` for programs in a terminal.
    """
    if env.get("SYSTEMD_EXEC_PID") == str(pid):
        return "systemd"
    return "launchd" if env.get("XPC_SERVICE_NAME", "0") != "0" else None
