"""Packages from npm, installed once on a machine for all tests, from the lock file beside this module."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.needs import needs

HERE = Path(__file__).parent
FILES = ("package.json", "package-lock.json")

INSTALL_S = 90
"""For 60 MB, 10 s on an idle machine. Only the first run on a machine waits for it."""


def installed(config):
    """The directory `node_modules` with everything that `package.json` names.

    The tests of one run are spread over processes: the first one installs, the others wait for the lock.
    """
    needs("npm", "node")
    lock = (HERE / "package-lock.json").read_bytes()
    home = config.cache.mkdir("npm") / hashlib.sha256(lock).hexdigest()[:16]
    home.mkdir(exist_ok=True)
    done = home / "done"
    with (home / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not done.exists():
            for name in FILES:
                shutil.copy(HERE / name, home)
            # --install-scripts of packages are not needed here, and would be code that no test asked for.
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=home, env=os.environ, check=True, capture_output=True, timeout=INSTALL_S)
            done.touch()
    return home / "node_modules"
