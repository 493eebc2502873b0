"""Packages of npm, installed once on a machine."""

import shutil
import subprocess
import tempfile
from pathlib import Path


def installed(folder, version, packages, *, within_s):
    """Their `node_modules`, in a directory of the tests' cache that is made whole or not at all."""
    home = folder / version
    if not home.exists():
        draft = Path(tempfile.mkdtemp(dir=folder))
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", draft, *packages]
        subprocess.run(command, check=True, capture_output=True, timeout=within_s)
        try:
            draft.rename(home)
        except OSError:  # another run was faster
            shutil.rmtree(draft)
    return home / "node_modules"
