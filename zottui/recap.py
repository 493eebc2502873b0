"""The recap: one line about what happened in a session while no terminal showed it.

How far a terminal has read is stored in `$ZOT_HOME/seen/`, one small file for each session. It is written while events
arrive and not only at the end, since terminals are more often killed than closed.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from zotd import paths, private_file
from zotd.client.humanize import counted
from zotd.wire.api import Attached
from zotd.wire.content import Message, ToolCall, ToolResult
from zottui.calls import CHANGING
from zottui.transcript import is_prompt
from zottui.ui_context import ClientEnvironment, NotePrinter, TaskSpawner

AWAY_S = 600.0
"""Seconds of absence after which a recap is printed; after a shorter one the user remembers."""

WRITTEN_S = 5.0
"""Least seconds between two writes of the file while events arrive."""


class ReadingContext(ClientEnvironment, NotePrinter, TaskSpawner, Protocol):
    """What `Reading` needs of the application."""


class Reading:
    """How far the user has read a session, in this terminal or an earlier one."""

    def __init__(self, ui: ReadingContext, session: str) -> None:
        """Read what the last terminal has stored. Blocks: call it in a thread."""
        self._ui = ui
        self._path = os.path.join(paths.zot_home(ui.env), "seen", f"{session}.json")
        self._seen, when = _read(self._path)
        """`seq` of the newest event that is stored as shown; 0: the session was never shown."""
        self._away_s = time.time() - when  # wall clock: the last terminal was another process
        # `seq` of the newest event on the screen.
        self._shown = 0
        self._is_writing = False

    def attached(self, snapshot: Attached) -> None:
        """Print the recap at the first attach."""
        words = recap(snapshot.messages, self._seen, self._away_s, len(snapshot.approvals))
        self._away_s = 0.0  # no recap after a reconnect: the missed events are printed themselves
        if words:
            self._ui.say(words)
        self.shown(snapshot.seq)

    def shown(self, seq: int) -> None:
        """Note that everything up to `seq` is on the screen."""
        self._shown = max(self._shown, seq)
        if self._shown > self._seen and not self._is_writing:
            self._is_writing = True
            self._ui.spawn(self._write())

    def close(self) -> None:
        """Store the final position. Blocks for about a millisecond."""
        if self._shown:
            self._store()

    async def _write(self) -> None:
        try:
            while self._shown > self._seen:
                await asyncio.to_thread(self._store)
                await asyncio.sleep(WRITTEN_S)
        finally:
            self._is_writing = False

    def _store(self) -> None:
        """Write the file; on an error there is no recap next time, which is no reason to bother the user."""
        self._seen = self._shown  # even if the write fails: do not retry in a loop
        with suppress(OSError, paths.UnsafePathError):
            paths.check_private_dir(os.path.dirname(self._path))
            private_file.write(Path(self._path), json.dumps({"seq": self._seen, "time": time.time()}).encode())


def _read(path: str) -> tuple[int, float]:
    try:
        with open(path, encoding="ascii") as file:
            kept = json.load(file)
        return int(kept["seq"]), float(kept["time"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0, 0.0


def recap(messages: Sequence[Message], seen: int, away_s: float, waiting: int) -> str:
    """Return a summary of what is new since the event `seen`; empty if nothing is, or the user was away only shortly."""
    news = [message for message in messages if (message.seq or 0) > seen]
    if not seen or away_s < AWAY_S or not (news or waiting):
        return ""
    turns = sum(map(is_prompt, news))
    pieces = [part for message in news for part in message.content]
    # Only successful calls have changed a file, and a file that was edited twice counts once.
    done = {part.call_id for part in pieces if isinstance(part, ToolResult) and not part.is_error}
    changed = {
        str(part.args.get("path"))
        for part in pieces
        if isinstance(part, ToolCall) and part.name in CHANGING and part.id in done
    }
    parts = [counted(turns, "turn")] if turns else []
    parts += [f"{counted(len(changed), 'file')} changed"] if changed else []
    parts += [f"{counted(waiting, 'approval')} waiting"] if waiting else []
    return f"since you left: {', '.join(parts) or counted(len(news), 'message')}"
