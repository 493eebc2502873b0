"""What can be told without the daemon, each check in its own function; none changes anything that stays.

A check gets the `Scene` and gives what it finds. It may take as long as it likes: whoever runs it does not wait.
"""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from zotctl import service_lookup
from zotctl.doctor.findings import Finding, found
from zotd import config, paths
from zotd.client.humanize import size

PROBE_BYTES = 64 * 1024
"""Written into the home to see whether there is room: more than what a file system keeps within a directory entry."""

LEAST_FREE_BYTES = 32 * 1024 * 1024
"""Half of the write-ahead log at its largest; with less, the next long session fails."""

LOGINCTL_S = 0.8
"""How long `loginctl` may take: logind answers in milliseconds, or not at all."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a write for which there is no room, or no leave to take more."""


class Scene:
    """Where to look."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env`: says where everything is."""
        self.env = env
        self.home = Path(paths.zot_home(env))
        self.socket = paths.socket_path(env)


def socket_directory(scene: Scene) -> Iterator[Finding]:
    """The directory of the socket is private, or not there yet."""
    folder = os.path.dirname(scene.socket)
    if os.path.lexists(folder):
        try:
            paths.check_private_dir(folder)
        except paths.UnsafePathError as error:
            yield found("socket-directory", str(error), folder=folder)


def home(scene: Scene) -> Iterator[Finding]:
    """There is a home that can be written, and room in it."""
    place = _nearest(scene.home)
    try:
        paths.check_text(str(scene.home))
        if place == scene.home:
            _write_into(place)
        elif not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK):  # it will be made there
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
    """The daemon's log can be written, or made where logs are; whether those can be made is the home's affair."""
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
    """The configuration can be used; what is merely unknown in it is the daemon's to tell."""
    try:
        config.load(scene.home / "config.toml", scene.env)
    except config.ConfigError as error:
        yield found("config-invalid", str(error))


def linger(scene: Scene) -> Iterator[Finding]:
    """A service of systemd goes on after the last logout."""
    file, loginctl = service_lookup.installed(scene.env), shutil.which("loginctl", path=scene.env.get("PATH"))
    if file is None or not file.endswith(service_lookup.UNIT) or loginctl is None:
        return
    command = [loginctl, "show-user", str(os.getuid()), "--property=Linger", "--value"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LOGINCTL_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return  # no logind, so nobody who would end it
    if said.stdout.strip() == "no":
        yield found("linger-off", f"the service {file} stops at your last logout")


def _write_into(folder: Path) -> None:
    """Raises OSError when there is no room for `PROBE_BYTES`, or no leave to write them; leaves nothing."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
        if probe.write(bytes(PROBE_BYTES)) < PROBE_BYTES:  # the next write would be refused
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _nearest(path: Path) -> Path:
    """The path itself, or the nearest directory above it that there is."""
    while not os.path.lexists(path):
        path = path.parent
    return path
