"""Files that are there when they are complete, and not before: half of one would be taken for the thing."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def write_atomically(path: str) -> Iterator[TextIO]:
    """A file that takes the place of `path` when it is complete; a pipe or a device is written to as it is."""
    path = os.path.realpath(path)
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "w", encoding="utf-8") as file:
            yield file
        return
    descriptor, draft = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
