"""Packages from npm, installed once on a machine for all tests, from the lock file of a project."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.needs import needs

HERE = Path(__file__).parent
FILES = ("package.json", "package-lock.json")

INSTALL_S = 240
"""For 150 MB, 10 s on an idle machine. Only the first run on a machine waits for it."""


@contextlib.contextmanager
def alone(home):
    """Make this directory, and keep the other processes of a run out of it."""
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def installed(config, project=HERE):
    """The directory `node_modules` with everything that `package.json` of this project names.

    The tests of one run are spread over processes: the first one installs, the others wait for the lock.
    """
    needs("npm", "node")
    lock = (project / "package-lock.json").read_bytes()
    home = config.cache.mkdir("npm") / hashlib.sha256(lock).hexdigest()[:16]
    with alone(home):
        if not (home / "done").exists():
            for name in FILES:
                shutil.copy(project / name, home)
            # --install-scripts of packages are not needed here, and would be code that no test asked for.
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=home, env=os.environ, check=True, capture_output=True, timeout=INSTALL_S)
            (home / "done").touch()
    return home / "node_modules"
