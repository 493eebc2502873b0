"""Looks at the descriptors of a template process."""

import time
from contextlib import suppress
from pathlib import Path

LIMIT_S = 30
"""Longest wait for a process."""


def descriptors_at_rest(process):
    """How many descriptors it has when it has none for a client: it closes that after the program's end."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        with suppress(FileNotFoundError):  # closed meanwhile
            opened = [str(one.readlink()) for one in Path(f"/proc/{process.pid}/fd").iterdir()]
            if sum(one.startswith("socket:") for one in opened) == 1:  # the listener
                return len(opened)
        assert time.monotonic() < deadline
