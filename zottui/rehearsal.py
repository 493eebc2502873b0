"""Draws a session on a terminal that a template process makes for it, so that its forks find everything loaded and built.

prompt_toolkit builds its bindings, styles and layout when they are first used. There is no daemon: the session is one of a
few messages, and nothing of the user's is read or kept.
"""

import asyncio
import logging
import os
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prompt_toolkit.application import create_app_session

from zotd.wire.api import Attached, SessionInfo
from zotd.wire.content import Message, Text, Tokens
from zottui.app import App
from zottui.preferences import load
from zottui.setup import Setup
from zottui.startup import Startup
from zottui.terminal.device import leaving_on_signals
from zottui.theme import choose

LIMIT_S = 10.0
"""Longest rehearsal, which takes 0.1 s."""

ROWS, COLUMNS = 24, 80

TIME = "2026-01-01T00:00:00.000Z"

REPLY = """Some *text*, a [link](https://example.org) and `code`:

- one
- two

```python
def answer() -> int:
    return 42
```
"""

KEY = "x"

READ_BYTES = 4096

log = logging.getLogger(__name__)


def rehearse() -> None:
    """Draw a session and a key. A failure is only logged: the client then builds everything itself."""
    try:
        with tempfile.TemporaryDirectory(prefix="zot-rehearsal-") as folder, _terminal() as screen:
            env = {"ZOT_HOME": str(Path(folder, "home")), "TERM": "xterm-256color"}
            with create_app_session():  # forks make their own output, for their own terminal
                asyncio.run(_drawn(env, folder, screen))
    except Exception as error:  # noqa: BLE001  (no terminal, no space: the client starts without a rehearsal)
        log.warning("the rehearsal of the terminal client failed: %s", error)


async def _drawn(env: Mapping[str, str], folder: str, screen: int) -> None:
    opening: asyncio.Future[Startup] = asyncio.get_running_loop().create_future()
    theme = choose(env, load(env).theme, is_dark=True)
    app = App(Setup(theme=theme, cwd=folder, env=env))
    loop, seen, drawn = asyncio.get_running_loop(), bytearray(), asyncio.Event()

    def read() -> None:
        seen.extend(os.read(screen, READ_BYTES))
        if KEY.encode() in seen.rpartition("❯".encode())[2]:
            drawn.set()

    async def use() -> None:
        app.take(_snapshot(folder))
        os.write(screen, KEY.encode())
        await drawn.wait()
        app.leave()

    loop.add_reader(screen, read)
    try:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
            _ = tasks.create_task(use())  # begins when the application runs and waits for keys
            with leaving_on_signals(app.leave):
                await app.run(opening)
    finally:
        loop.remove_reader(screen)
        opening.cancel()


@contextmanager
def _terminal() -> Iterator[int]:
    """Have a terminal as standard input and output; yields the end that draws it and types."""
    screen, terminal = os.openpty()
    termios.tcsetwinsize(screen, (ROWS, COLUMNS))
    kept, streams, term = [os.dup(0), os.dup(1)], (sys.stdin, sys.stdout), os.environ.get("TERM")
    try:
        for number in (0, 1):
            os.dup2(terminal, number)
        os.environ["TERM"] = "xterm-256color"
        with (
            open(0, encoding="utf-8", closefd=False) as sys.stdin,
            open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
        ):
            yield screen
    finally:
        sys.stdin, sys.stdout = streams
        os.environ.pop("TERM")
        if term is not None:
            os.environ["TERM"] = term
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(screen)
        os.close(terminal)


def _snapshot(folder: str) -> Attached:
    session = SessionInfo(
        id="s_rehearsal",
        name="",
        cwd=folder,
        provider="anthropic",
        model="rehearsal",
        reasoning="",
        mode="yolo",
        state="idle",
        created=TIME,
        updated=TIME,
        message_count=2,
    )
    messages = [Message("user", [Text("hello")], TIME, seq=1), Message("assistant", [Text(REPLY)], TIME, seq=2)]
    return Attached("snapshot", session, 2, "e", Tokens(), [], [], [], [], [], None, messages, has_more=False)
