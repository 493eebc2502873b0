"""What happened while nobody looked: one line when somebody comes back after a while.

Where a terminal stopped reading is kept in `$ZOT_HOME/seen/`, one small file for each session: terminals are killed more
often than they are closed, so it is written while they read, and not when they leave.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence

from zotd import paths
from zotd.wire.content import Message, ToolCall

AWAY_S = 600.0
"""Who was away for less remembers."""

WRITTEN_S = 5.0
"""How often it is written at most, while events come."""

CHANGING = ("edit", "write")
"""Tools that change files."""


class Seen:
    """How far the user has read a session."""

    def __init__(self, env: Mapping[str, str], session: str) -> None:
        """Reads what the last terminal has left."""
        self._path = os.path.join(paths.zot_home(env), "seen", f"{session}.json")
        self.seq, self.when = _read(self._path)
        """The newest event that was shown, and when; (0, 0.0): this session was never shown."""
        self._written = 0.0

    def note(self, seq: int) -> None:
        """Everything up to `seq` is on the screen now."""
        now = time.time()
        if now - self._written < WRITTEN_S:
            return
        self._written = now
        self.write(seq)

    def write(self, seq: int) -> None:
        """Keep it; whoever cannot is only without a recap later."""
        paths.make_private_dir(os.path.dirname(self._path))
        beside = f"{self._path}.{os.getpid()}"
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            json.dump({"seq": seq, "time": time.time()}, file)
        os.replace(beside, self._path)


def _read(path: str) -> tuple[int, float]:
    try:
        with open(path, encoding="ascii") as file:
            kept = json.load(file)
        return int(kept["seq"]), float(kept["time"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0, 0.0


def recap(messages: Sequence[Message], seen: int, away_s: float, waiting: int) -> str:
    """What is new since the event `seen`, in words; empty: nothing, or the user was not away for long."""
    news = [message for message in messages if (message.seq or 0) > seen]
    if not seen or away_s < AWAY_S or not (news or waiting):
        return ""
    turns = sum(message.role == "user" for message in news)
    changed = {
        str(block.args.get("path"))
        for message in news
        for block in message.content
        if isinstance(block, ToolCall) and block.name in CHANGING
    }
    parts = [_some(turns, "turn"), _some(len(changed), "file") + " changed" * bool(changed)]
    parts += [_some(waiting, "approval") + " waiting" * bool(waiting)]
    return "since you left: " + (", ".join(part for part in parts if part) or _some(len(news), "message"))


def _some(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}" if number else ""
