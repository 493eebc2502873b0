"""Limits how often clients start a daemon that ends at once.

The file `<socket>.starts` records each recent start: its time, the size of the start log, the version of config.toml,
and the reason of its failure. It is read and written under the start lock. A start counts as failed if the daemon ended
within `LIVED_S`, unless it was stopped (then it removes its socket and logs nothing) or config.toml has changed since,
which may have fixed the cause.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress

from zotd import paths
from zotd.client.errors import StartError

WINDOW_S = 60.0
"""Age up to which a failed start counts, in seconds; short, so that a temporary cause such as a full disk does not
block starts for long."""

LIVED_S = 20.0
"""Lifetime in seconds below which a start counts as failed; loading a thousand sessions takes 0.6 s."""

LIMIT = 3
"""Number of failed starts after which clients report an error and start no further daemon."""

REASON_BYTES = 64 * 1024
"""Length of the end of the start log that is searched for the reason of a failure, in bytes."""

REASON_CHARS = 500
"""Length of a recorded reason."""

Start = tuple[float, int, int, str | None]
"""Time on the monotonic clock, which all processes share; size of the log before the start in bytes; modification time
of config.toml in ns (0 if there is none); reason of the failure, None while the daemon runs."""


class RespawnLimit:
    """The recorded starts at one socket. The caller must hold the start lock."""

    def __init__(self, socket: str, env: Mapping[str, str]) -> None:
        """Use the home that `env` names for the start log and the configuration."""
        self._socket = socket
        self._log = paths.start_log(env)
        self._config = os.path.join(paths.zot_home(env), "config.toml")
        self._file = f"{socket}.starts"

    def forget(self) -> None:
        """Delete all records, when a person explicitly requests a start."""
        with suppress(OSError):
            os.unlink(self._file)

    def check(self) -> None:
        """Raise `StartError` after `LIMIT` failed starts; its message has the last reason and what to do."""
        now = time.monotonic()
        starts = self._lately(now)
        self._write(starts)
        complaint = self._complaint(starts, now)
        if complaint is not None:
            raise StartError(complaint)

    def complaint(self) -> str | None:
        """Return the error that `check` would raise, or None. Does not need the lock and changes nothing."""
        now = time.monotonic()
        return self._complaint(self._lately(now), now)

    def note(self, reason: str | None = None) -> None:
        """Record a start; `reason` is set if it failed. Call `check` or `forget` before."""
        start = (time.monotonic(), size(self._log), self._changed_ns(), reason and reason[:REASON_CHARS])
        self._write([*self._read(), start])

    def _complaint(self, starts: list[Start], now: float) -> str | None:
        if len(starts) < LIMIT:
            return None
        wait_s = max(1, round(starts[-LIMIT][0] + WINDOW_S - now))
        return (
            f"zotd was started {len(starts)} times within {WINDOW_S:g} s and failed each time, last because: "
            f"{starts[-1][3]} (log: {self._log}); it is not started again for {wait_s} s; `zotctl start` starts it now"
        )

    def _lately(self, now: float) -> list[Start]:
        """Return the recent failed starts, oldest first. Whether the last one has failed may be determined only now."""
        starts = self._read()
        if starts and starts[-1][3] is None:
            at, log_bytes, changed_ns, _ = starts.pop()
            reason = self._end(log_bytes) if now - at < LIVED_S else None
            if reason is not None:
                starts.append((at, log_bytes, changed_ns, reason))
        changed_ns = self._changed_ns()
        # A time in the future is from before a reboot, since the monotonic clock starts at zero.
        return [one for one in starts if 0 <= now - one[0] < WINDOW_S and one[2] == changed_ns]

    def _end(self, log_bytes: int) -> str | None:
        """Return why a daemon that had started has ended; None if it was stopped."""
        said = last_line(self._log, log_bytes)
        if said:
            return said[:REASON_CHARS]
        return "it was killed or crashed without a message" if os.path.exists(self._socket) else None

    def _changed_ns(self) -> int:
        try:
            return os.stat(self._config).st_mtime_ns
        except OSError:
            return 0

    def _read(self) -> list[Start]:
        try:
            with open(self._file, encoding="utf-8") as file:
                return [(float(at), int(end), int(ns), why and str(why)) for at, end, ns, why in json.load(file)]
        except (OSError, ValueError, TypeError):  # missing or malformed: start counting again
            return []

    def _write(self, starts: list[Start]) -> None:
        """Write the records. Failures are ignored, because the limit is only a precaution."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(OSError), open(os.open(self._file, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(starts[-LIMIT:], file)


def size(log: str) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return os.stat(log).st_size
    except OSError:
        return 0


def last_line(log: str, start: int) -> str:
    """Return the last line of a log after offset `start`, which is where Python writes the exception; may be empty."""
    try:
        with open(log, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A file shorter than `start` is a new one: the log was rotated.
            file.seek(max(start if start <= end else 0, end - REASON_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
