"""The service that runs the daemon: whether one is installed for this home, and whether the daemon is its."""

import os
from collections.abc import Mapping

from zotd import paths

UNIT = "zotd.service"

PLIST = "zotd.plist"
"""How the name of ours ends: labels begin with a domain."""


def installed(env: Mapping[str, str]) -> str | None:
    """The file of the user's service that serves the home of `env`; None: there is none."""
    for folder, ending in _folders(env):
        for name in _listed(folder):
            file = os.path.join(folder, name)
            if name.endswith(ending) and _serves(file, env):
                return file
    return None


def disagreement(service: object, env: Mapping[str, str]) -> tuple[str, str]:
    """What is wrong about who runs the daemon, and the command that helps; empty texts: nothing is.

    `service`: as the daemon says in its status.
    """
    file = installed(env)
    if file is not None and service is None:
        return f"the service {file} is installed, and this zotd runs beside it", "zotctl restart --when-idle"
    if file is None and service is not None:
        return f"{service} runs this zotd, and its service is not installed any more", "zotctl service install"
    return "", ""


def start_command(file: str | None, uid: int) -> list[str]:
    """What starts the service `file`, or systemd's when it is not known, unless it runs; `uid`: whose it is."""
    if file is None or file.endswith(UNIT):
        return ["systemctl", "--user", "start", UNIT if file is None else os.path.basename(file)]
    return ["launchctl", "kickstart", f"gui/{uid}/{os.path.basename(file).removesuffix('.plist')}"]


def _folders(env: Mapping[str, str]) -> list[tuple[str, str]]:
    user = env.get("HOME") or os.path.expanduser("~")
    config = env.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")
    return [
        (os.path.join(config, "systemd", "user"), UNIT),
        ("/etc/systemd/user", UNIT),
        (os.path.join(user, "Library", "LaunchAgents"), PLIST),
    ]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _serves(file: str, env: Mapping[str, str]) -> bool:
    """Whether it is for this home: the one that it names, or the one that is there without a word."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            text = opened.read()
    except OSError:
        return False
    home = paths.zot_home(env)
    if "ZOT_HOME" in text:
        return home in text
    return home == paths.zot_home({name: value for name, value in env.items() if name != "ZOT_HOME"})
