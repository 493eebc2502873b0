"""Terminals of an editor for tests: pseudoterminals, and programs that run in them."""

import asyncio
import os
import pty
import re
import signal
from contextlib import suppress

import acp

from tests.bridges.acp.editor import WAIT_S


class Terminals:
    """What an editor does that is asked for terminals. `async with` ends what is left."""

    def __init__(self, *, refuses="", hangs=False, python=None):
        """`refuses`: says no, with this sentence. `hangs`: does not answer `terminal/create` until `go_on` is set.

        `python`: runs this instead of the interpreter that it is told.
        """
        self.refuses = refuses
        self.hangs = hangs
        self.go_on = asyncio.Event()
        self.python = python
        self.asked = []
        """The command lines."""
        self.calls = []
        """What was done, as `(method, terminal)`."""
        self.running = {}
        """By name: the process, and what it has written."""
        self.released = set()
        self._news = asyncio.Condition()
        self._tasks = asyncio.TaskGroup()

    async def until(self, pattern, name="term_0"):
        """Wait for this output; the first group of the pattern."""
        async with asyncio.timeout(WAIT_S), self._news:
            await self._news.wait_for(lambda: re.search(pattern, self.text(name)))
        return re.findall(pattern, self.text(name))[0]

    async def __aenter__(self):
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_):
        for name in self.running:
            self.kill(name)
            await self.running[name][0].wait()
            self.release(name)
        await self._tasks.__aexit__(None, None, None)

    async def create(self, command, args, cwd, limit):
        self.asked.append([command, *args])
        if self.refuses:
            raise acp.RequestError(-32000, self.refuses)
        if self.hangs:
            await self.go_on.wait()
        ours, theirs = pty.openpty()
        # In our session: a daemon in this loop would reap it otherwise.
        env = {**os.environ, "OF_EDITOR": "1", "TERM": "xterm-test"}
        process = await asyncio.create_subprocess_exec(
            self.python or command,
            *args,
            cwd=cwd,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            process_group=0,
        )
        os.close(theirs)
        name, written = f"term_{len(self.running)}", bytearray()
        self.running[name] = process, written, limit, ours
        asyncio.get_running_loop().add_reader(ours, self._read, ours, written)
        self.calls.append(("create", name))
        return name

    def _read(self, ours, written):
        try:
            written += os.read(ours, 1 << 16)
        except OSError:  # nothing has it open any more
            asyncio.get_running_loop().remove_reader(ours)
        self._tasks.create_task(self._tell())

    async def _tell(self):
        async with self._news:
            self._news.notify_all()

    async def ended(self, name):
        process, written, _, ours = self.running[name]
        code = await process.wait()
        with suppress(OSError, BlockingIOError):  # what is still in the terminal
            os.set_blocking(ours, False)
            while part := os.read(ours, 1 << 16):
                written += part
        return (code, None) if code >= 0 else (None, signal.Signals(-code).name)

    def output(self, name):
        _, written, limit, _ = self.running[name]
        return written[-limit:].decode(errors="replace"), len(written) > limit

    def text(self, name="term_0"):
        return self.running[name][1].decode() if name in self.running else ""

    def kill(self, name):
        self.calls.append(("kill", name))
        process = self.running[name][0]
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def release(self, name):
        self.calls.append(("release", name))
        if name not in self.released:
            self.kill(name)
            self.calls.pop()
            self.released.add(name)
            asyncio.get_running_loop().remove_reader(self.running[name][3])
            os.close(self.running[name][3])
