"""A real `systemd --user` that knows nothing of this machine's, and programs that run beside it."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

from zotd.template.client import SWITCH
from zotd.testing.live_daemon import ROOT

SCRIPT = Path(__file__).parent / "user-manager.sh"

MANAGER = "/lib/systemd/systemd"

NAMESPACES = ("--mount", "--cgroup", "--pid")

UP_S = 40.0
"""Longest wait for the manager; it takes 0.5 s."""

RUN_S = 50.0
"""Longest run of a program beside it."""

BIN = str(Path(sys.executable).parent)


def lacking() -> str | None:
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "making a cgroup and mounting takes root"
    if not os.access(MANAGER, os.X_OK) or shutil.which("systemctl") is None:
        return "this machine has no systemd"
    # What the script does first, and some containers forbid.
    try_mount = "mount -t tmpfs tmpfs /run && { umount --lazy --recursive /sys/fs/cgroup || true; } 2>/dev/null"
    command = ["unshare", *NAMESPACES, "--fork", "--mount-proc", "--kill-child", "bash", "-c"]
    tried = subprocess.run(
        [*command, f"{try_mount} && mount -t cgroup2 none /sys/fs/cgroup && test -w /sys/fs/cgroup"],
        capture_output=True,
        check=False,
        text=True,
        timeout=UP_S,
    )
    return f"namespaces and cgroups are not permitted here: {tried.stderr.strip()}" if tried.returncode else None


class UserManager:
    """The manager, until it is closed."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.home.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([BIN, os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "USER": "root",
            "LANG": "C.UTF-8",
            SWITCH: "off",
        }
        self._cgroup = f"zot-test-{os.getpid()}"
        with (folder / "manager.log").open("w") as log:
            self._process = subprocess.Popen(
                ["unshare", *NAMESPACES, "--fork", "--mount-proc", "--kill-child", "bash", SCRIPT, self._cgroup],
                env=self.env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.env["XDG_RUNTIME_DIR"] = f"/run/user/{os.getuid()}"
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], UP_S)[0], (folder / "manager.log").read_text()
        said = self._process.stdout.readline()
        assert said in {"up: running\n", "up: degraded\n"}, (folder / "manager.log").read_text()
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="ascii")
        self._first = os.pidfd_open(int(children))
        self._enter = ["nsenter", "--target", children.strip(), *NAMESPACES, "--wd=/", "--"]

    def close(self):
        """End everything in it, by ending the first process of its namespace."""
        self._process.kill()
        self._process.wait()
        select.select([self._first], [], [], UP_S)  # it ends when all others have
        os.close(self._first)
        assert self._process.stdout is not None
        self._process.stdout.close()
        for top in Path("/sys/fs/cgroup").glob(f"**/{self._cgroup}"):
            for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
                folder.rmdir()
            top.rmdir()

    def start(self, *command, **options):
        """A program beside the manager, which the caller ends."""
        return subprocess.Popen([*self._enter, *command], env=self.env, text=True, **options)

    def run(self, *command):
        """The same until its end: its exit code and what it printed, standard error last."""
        done = subprocess.run(
            [*self._enter, *command], env=self.env, capture_output=True, check=False, text=True, timeout=RUN_S
        )
        return done.returncode, done.stdout + done.stderr

    def zotctl(self, *words):
        return self.run("zotctl", *words)

    def asked(self, *words):
        """The JSON that `zotctl` prints."""
        code, said = self.zotctl(*words, "--json")
        assert said.startswith("{"), (code, said)
        return json.loads(said)

    def show(self, what, unit="zotd.service"):
        """A property of a unit."""
        return self.run("systemctl", "--user", "show", f"--property={what}", "--value", unit)[1].strip()

    def order(self, *words):
        code, said = self.run("systemctl", "--user", *words)
        assert code == 0, said
