"""Finds the systemd or launchd service installed for a home, and compares it with the running daemon."""

import os
from collections.abc import Mapping

from zotd import paths

UNIT = "zotd.service"

PLIST = "zotd.plist"
"""Suffix of the agent's file name; labels begin with a domain."""


def installed(env: Mapping[str, str]) -> str | None:
    """Return the unit or agent file for the home of `env`; None if there is none."""
    for folder, ending in _folders(env):
        for name in _listed(folder):
            file = os.path.join(folder, name)
            if name.endswith(ending) and _serves(file, env):
                return file
    return None


def folder(env: Mapping[str, str]) -> str:
    """Return the directory of the user's own systemd units; it may not exist."""
    config = env.get("XDG_CONFIG_HOME", "")
    return os.path.join(config if os.path.isabs(config) else os.path.join(_user(env), ".config"), "systemd", "user")


def disagreement(service: object, env: Mapping[str, str]) -> tuple[str, str]:
    """Return a problem and the command that solves it, if the installed service did not start the daemon, or vice versa.

    Both are "" if there is no problem. `service` is the field of the daemon's status.
    """
    file = installed(env)
    if file is not None and service is None:
        return f"the service {file} is installed but did not start this zotd", "zotctl restart --when-idle"
    if file is None and service is not None:
        return f"{service} started this zotd, but its service is no longer installed", "zotctl service install"
    return "", ""


def start_command(file: str | None, uid: int) -> list[str]:
    """Return the command that starts the service `file` of user `uid`; None stands for the systemd unit."""
    if file is None or file.endswith(UNIT):
        return ["systemctl", "--user", "start", UNIT if file is None else os.path.basename(file)]
    return ["launchctl", "kickstart", f"gui/{uid}/{os.path.basename(file).removesuffix('.plist')}"]


def _folders(env: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (folder(env), UNIT),
        ("/etc/systemd/user", UNIT),
        (os.path.join(_user(env), "Library", "LaunchAgents"), PLIST),
    ]


def _user(env: Mapping[str, str]) -> str:
    return env.get("HOME") or os.path.expanduser("~")


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _serves(file: str, env: Mapping[str, str]) -> bool:
    """Whether the service is for the home of `env`, explicitly or by default."""
    try:
        named = _of_agent(file) if file.endswith(PLIST) else _of_unit(file, env)
    except (OSError, ValueError):  # missing or invalid, so it starts nothing
        return False
    unnamed = {name: value for name, value in env.items() if name != "ZOT_HOME"}
    return paths.zot_home({**unnamed, **named}) == paths.zot_home(env)


def _of_unit(file: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a systemd unit; drop-ins are not read."""
    import shlex  # noqa: PLC0415  (only needed if there is a service)

    with open(file, encoding="utf-8", errors="replace") as opened:
        lines = [line.partition("=")[2] for line in opened if line.startswith("Environment=")]
    words = [word.partition("=") for line in lines for word in shlex.split(line)]
    return {name: _specified(value, env) for name, _, value in words}


def _specified(value: str, env: Mapping[str, str]) -> str:
    """Expand the specifiers `%h` and `%%` (`systemd.unit(5)`)."""
    return "%".join(part.replace("%h", _user(env)) for part in value.split("%%"))


def _of_agent(file: str) -> dict[str, str]:
    """Return the environment of a launchd agent."""
    import plistlib  # noqa: PLC0415  (as above)
    from xml.parsers.expat import ExpatError  # noqa: PLC0415

    try:
        with open(file, "rb") as opened:
            return dict(plistlib.load(opened).get("EnvironmentVariables", {}))
    except ExpatError as error:
        raise ValueError(str(error)) from error
