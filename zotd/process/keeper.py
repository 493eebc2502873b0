"""Who runs the daemon: a service manager, which starts it again and whom a restart has to go through, or nobody."""

from collections.abc import Mapping


def keeper(env: Mapping[str, str], pid: int) -> str | None:
    """`systemd` or `launchd` when it started the process `pid`, whose environment this is; else None.

    What a terminal inherits from its own service does not count: systemd names the process that it means (since
    version 248), and below launchd a terminal's programs find `0` where a service finds its name.
    """
    if env.get("SYSTEMD_EXEC_PID") == str(pid):
        return "systemd"
    return "launchd" if env.get("XPC_SERVICE_NAME", "0") != "0" else None
