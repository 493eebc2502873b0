"""Where the shadow repositories are."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

FOLDER = "checkpoints"
"""Directory of all shadow repositories, in `$ZOT_HOME`."""

JOURNAL = "restore.journal"
"""Name of the file that says what an interrupted restore was about to do, in a shadow repository."""


def unfinished(home: str) -> list[str]:
    """Return the workspaces in which a restore was interrupted. Blocks."""
    found = []
    for place in Path(home, FOLDER).glob(f"*/{JOURNAL}"):
        with suppress(OSError), open(place.with_name("workspace"), "rb") as file:
            found.append(os.fsdecode(file.read().removesuffix(b"\n")))
    return found


def folder_of(home: str, workspace: str) -> str:
    """Return the place of a workspace's shadow repository; `workspace` is a real path."""
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
    return os.path.join(home, FOLDER, digest)
