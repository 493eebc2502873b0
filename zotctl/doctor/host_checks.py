"""Checks of files and settings that need no daemon. They leave nothing changed.

Each check yields its findings. It may block: `zotctl.doctor.runner` stops waiting after its time limit.
"""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from zotctl import service_lookup
from zotctl.doctor.findings import Finding, found
from zotd import config, paths
from zotd.client.humanize import size
from zotd.template import client, thin

PROBE_BYTES = 64 * 1024
"""Size of a test write to the home; too large for a file system to store inside the inode."""

LEAST_FREE_BYTES = 32 * 1024 * 1024
"""Half of the largest write-ahead log; with less free space the next long session fails."""

LOGINCTL_S = 0.8
"""Time limit for `loginctl`, in seconds; logind answers in milliseconds or not at all."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a write that mean no space, or a reached quota or size limit."""


class Scene:
    """The environment, home and socket that are checked."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Locate the home and the socket with the variables in `env`."""
        self.env = env
        self.home = Path(paths.zot_home(env))
        self.socket = paths.socket_path(env)


def socket_directory(scene: Scene) -> Iterator[Finding]:
    """Check that the directory of the socket is private, if it exists."""
    folder = os.path.dirname(scene.socket)
    if os.path.lexists(folder):
        try:
            paths.check_private_dir(folder)
        except paths.UnsafePathError as error:
            yield found("socket-directory", str(error), folder=folder)


def home(scene: Scene) -> Iterator[Finding]:
    """Check that the home is writable, or can be created, and has free space."""
    place = _nearest(scene.home)
    try:
        paths.check_text(str(scene.home))
        if place == scene.home:
            _write_into(place)
        elif not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):  # it would be created there
            yield found("home-not-writable", f"cannot create {scene.home} in {place}", f"ls -ld {place}")
            return
    except paths.UnsafePathError as error:
        yield found("home-not-writable", str(error), home=place)
        return
    except OSError as error:
        full = error.errno in FULL
        text = f"cannot write to {place}: {error.strerror}"
        if full and os.statvfs(place).f_favail == 0:
            yield found("disk-full", f"{text} (no free inodes)", f"df -i {place}")
        else:
            yield found("disk-full" if full else "home-not-writable", text, home=place)
        return
    free = os.statvfs(place)
    if free.f_bavail * free.f_frsize < LEAST_FREE_BYTES:
        yield found("disk-full", f"only {size(free.f_bavail * free.f_frsize)} are free in {place}", home=place)


def log(scene: Scene) -> Iterator[Finding]:
    """Check that the log can be written or created. Without a log directory, `home` covers it."""
    folder = scene.home / "logs"
    file = folder / "zotd.log"
    if not os.path.lexists(folder):
        return
    try:
        if os.path.lexists(file):
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
        else:
            tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        yield found("log-not-writable", f"cannot write {file}: {error.strerror}", log=folder)


def configuration(scene: Scene) -> Iterator[Finding]:
    """Check that the configuration is valid; the daemon itself warns about unknown settings."""
    try:
        config.load(scene.home / "config.toml", scene.env)
    except config.ConfigError as error:
        yield found("config-invalid", str(error))


def template(scene: Scene) -> Iterator[Finding]:
    """Check that the template process, if there is one, would serve a command that is started like this one."""
    if scene.env.get(client.SWITCH) == "off" or not sys.platform.startswith("linux"):
        return
    try:
        reason = thin.refusal(client.socket_path())
    except (paths.UnsafePathError, OSError, thin.NoServerError):
        return  # `socket_directory` reports the former; the next command starts the process
    if reason:
        yield found("cold-start", f"commands start without the template process: {reason}")


def linger(scene: Scene) -> Iterator[Finding]:
    """Check that an installed systemd service keeps running after logout."""
    file, loginctl = service_lookup.installed(scene.env), shutil.which("loginctl", path=scene.env.get("PATH"))
    if file is None or not file.endswith(service_lookup.UNIT) or loginctl is None:
        return
    command = [loginctl, "show-user", str(os.getuid()), "--property=Linger", "--value"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LOGINCTL_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return  # without logind nothing stops the service at logout
    if said.stdout.strip() == "no":
        yield found("linger-off", f"the service {file} stops at your last logout")


def _write_into(folder: Path) -> None:
    """Write `PROBE_BYTES` to a temporary file; raises OSError if they do not fit or are not allowed."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
        if probe.write(bytes(PROBE_BYTES)) < PROBE_BYTES:  # a short write: the next one would fail
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _nearest(path: Path) -> Path:
    """Return the path, or its nearest existing ancestor."""
    while not os.path.lexists(path):
        path = path.parent
    return path
