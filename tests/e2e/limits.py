"""Disks on which a daemon can store nothing."""

import psutil


class Limit:
    """No file of the daemon's may grow over some bytes: each write that would fails as on a disk that fails."""

    def __init__(self, daemon):
        self._process = psutil.Process(daemon.pid)
        _, self._hard = self._process.rlimit(psutil.RLIMIT_FSIZE)

    def set(self, size_bytes=1):
        self._process.rlimit(psutil.RLIMIT_FSIZE, (size_bytes, self._hard))

    def lift(self):
        self._process.rlimit(psutil.RLIMIT_FSIZE, (self._hard, self._hard))
