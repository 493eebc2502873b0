"""What became of the daemons that clients have started lately, so that one that cannot live is not started for ever.

A file beside the socket, `<socket>.starts`: for each start when it was, how long the start log was then, and why it
failed. Read and written under the start lock. What did not live for `LIVED_S` counts, unless it was stopped: a daemon
that is stopped takes its socket away and says nothing.
"""

import json
import os
import time
from contextlib import suppress

from zotd.client.errors import StartError

WINDOW_S = 60.0
"""How far back is counted: longer, and a laptop that wakes up with a full disk would be punished for the evening."""

LIVED_S = 20.0
"""A daemon that is gone before this has not worked; loading a thousand sessions takes it 0.6 s."""

LIMIT = 3
"""So many starts in vain, and clients leave it to a person."""

REASON_BYTES = 64 * 1024
"""How much of the start log is searched for the reason of a failure."""

REASON_CHARS = 500
"""How much of a reason is kept."""

Start = tuple[float, int, str | None]
"""When, by the monotonic clock, which all processes share; bytes in the log before; why it ended, None while it serves."""


class Starts:
    """The starts at one socket. The caller holds the start lock for as long as it uses this."""

    def __init__(self, socket: str, log: str) -> None:
        """`log`: what daemons say on standard error."""
        self._socket = socket
        self._log = log
        self._file = f"{socket}.starts"

    def forget(self) -> None:
        """A person wants it started, whatever has been."""
        with suppress(OSError):
            os.unlink(self._file)

    def check(self) -> None:
        """Raises `StartError` when it has been started in vain too often: with the last reason, and what to do."""
        now = time.monotonic()
        starts = self._lately(now)
        self._write(starts)
        complaint = self._complaint(starts, now)
        if complaint is not None:
            raise StartError(complaint)

    def complaint(self) -> str | None:
        """What `check` would say, while none runs; None: a client would start one. Needs no lock, changes nothing."""
        now = time.monotonic()
        return self._complaint(self._lately(now), now)

    def note(self, reason: str | None = None) -> None:
        """One was started; `reason`: and does not serve, because of that. `check` or `forget` come first."""
        start = (time.monotonic(), self._log_bytes(), reason and reason[:REASON_CHARS])
        self._write([*self._read(), start])

    def _complaint(self, starts: list[Start], now: float) -> str | None:
        if len(starts) < LIMIT:
            return None
        wait_s = max(1, round(starts[-LIMIT][0] + WINDOW_S - now))
        return (
            f"zotd was started {len(starts)} times within {WINDOW_S:g} s and has not lived, at last because: "
            f"{starts[-1][2]} (log: {self._log}); it is not started again for {wait_s} s, but with `zotctl start`"
        )

    def _lately(self, now: float) -> list[Start]:
        """Those that were in vain, oldest first; the last one may only be known to be so now."""
        starts = self._read()
        if starts and starts[-1][2] is None:
            at, log_bytes, _ = starts.pop()
            reason = self._end(log_bytes) if now - at < LIVED_S else None
            if reason is not None:
                starts.append((at, log_bytes, reason))
        return [start for start in starts if 0 <= now - start[0] < WINDOW_S]  # in the future: from before a reboot

    def _end(self, log_bytes: int) -> str | None:
        """Why a daemon that served is not there any more; None: somebody has stopped it."""
        said = last_line(self._log, log_bytes)
        if said:
            return said[:REASON_CHARS]
        return "it was killed, or crashed without a word" if os.path.exists(self._socket) else None

    def _log_bytes(self) -> int:
        try:
            return os.stat(self._log).st_size
        except OSError:
            return 0

    def _read(self) -> list[Start]:
        try:
            with open(self._file, encoding="utf-8") as file:
                return [(float(at), int(size), reason and str(reason)) for at, size, reason in json.load(file)]
        except (OSError, ValueError, TypeError):  # there is none, or it is not ours: the count begins anew
            return []

    def _write(self, starts: list[Start]) -> None:
        """Failing is no reason not to start: the ledger is a precaution."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(OSError), open(os.open(self._file, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(starts[-LIMIT:], file)


def last_line(log: str, start: int) -> str:
    """The last line of the file `log` behind the byte `start`: where Python puts the exception; empty: there is none."""
    try:
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start if start <= size else 0, size - REASON_BYTES))  # a shorter file has been put aside
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
