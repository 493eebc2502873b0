"""What a process knows of the directories in which its sessions record files: shared by directory, and bounded."""

import threading

from zotd.checkpoints.baseline import Baseline

MOST_WATCHED = 16
"""Directories that are watched at the same time. A user has 128 inotify descriptors, and other programs need some, too."""


class Baselines:
    """The baselines of directories, for the sessions that use them. Belongs to one event loop."""

    def __init__(self) -> None:
        self._known: dict[str, Baseline] = {}
        """By directory, what was used last at the end."""
        self._sessions: dict[str, set[str]] = {}
        """By directory: the sessions that use it."""

    def of(self, session: str, cwd: str) -> Baseline:
        """Return the baseline of a directory, which this session uses until `leave`."""
        self._sessions.setdefault(cwd, set()).add(session)
        found = self._known[cwd] = self._known.pop(cwd) if cwd in self._known else Baseline()
        if len(self._known) > MOST_WATCHED:
            self._close(next(iter(self._known)))
        return found

    def leave(self, session: str, cwd: str) -> None:
        """The session does not record any more; nothing is watched for a directory that no session uses."""
        sessions = self._sessions.get(cwd, set())
        sessions.discard(session)
        if not sessions:
            self._sessions.pop(cwd, None)
            self._close(cwd)

    def _close(self, cwd: str) -> None:
        gone = self._known.pop(cwd, None)
        if gone is not None:
            # Waits for a recording that is under way, and for the kernel; a program that ends waits for neither.
            threading.Thread(target=gone.close, name=f"end of the watch of {cwd}", daemon=True).start()
