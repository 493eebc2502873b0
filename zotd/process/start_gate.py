"""Starts a command in a process that another program has started, such as an editor in its terminal.

    us     start_gate ── socket ──────────────> the process asks ──> `let_in`: it has begun, and is ours from now on
    editor               argv ──> gated_command.py ──┘

The process gets the command, its directory and its environment through the socket, whole or not at all. So it is known
whether it has begun, whatever the other program says; closing the gate before that means that it never will. What was let in
is a descendant (`process.descent`), is in the ledger, and is ended like a child.
"""

import asyncio
import json
import os
import secrets
import signal
import socket
import struct
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from zotd.paths import make_private_dir
from zotd.process import descent
from zotd.process.census import KERNEL, Identity, identify, is_alive
from zotd.process.child import GRACE_S, KILL_S
from zotd.process.ladder import signal_all
from zotd.process.ledger import ChildLedger

SEND_S = 5.0
"""Longest time for a process to take what it is to run."""

WORDS = 200
"""Longest excerpt of the command that people see in the title of the terminal."""

_COMMAND = str(Path(__file__).with_name("gated_command.py"))

_UCRED = struct.Struct("3i")


class StartGate:
    """One gate, for one process."""

    def __init__(self, folder: str) -> None:
        """Listen on a new socket in `folder`, a directory of this user, which is made if it is missing. Raises OSError."""
        make_private_dir(folder)
        self.path = str(Path(folder, secrets.token_hex(8)))
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._listener.bind(self.path)
            self._listener.listen(1)
        except OSError:
            self._listener.close()
            raise

    def argv(self, words: str) -> list[str]:
        """Return the command that asks at this gate; `words` say to people what for."""
        line = words.partition("\n")[0][:WORDS]
        return [os.path.realpath(sys.executable), "-I", "-S", _COMMAND, self.path, line]

    async def let_in(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        owners: Collection[str],
        ledger: ChildLedger | None,
    ) -> "Begun":
        """Wait for the process, and have it begin. Wait as long as you like; once it returns, the command has begun.

        If it raises OSError, or is cancelled, the command has not begun and will not: close the gate.
        """
        loop = asyncio.get_running_loop()
        await self._asked()
        connection, _ = self._listener.accept()
        with connection:
            connection.setblocking(False)
            begun = Begun(_asking(connection), argv[0], owners, ledger)
            order = json.dumps({"argv": [*argv], "cwd": cwd, "env": descent.marked(env)}).encode()
            try:
                async with asyncio.timeout(SEND_S):
                    await loop.sock_sendall(connection, order)
                # It begins with the end of the line, which is sent without an await in between.
                connection.send(b"\n")
            except BaseException as error:
                begun.refuse()
                if isinstance(error, TimeoutError):
                    raise OSError("it does not take what it is to run") from error
                raise
            return begun

    async def _asked(self) -> None:
        # Not `sock_accept`, which loses a connection if it is cancelled in the wrong moment.
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()
        loop.add_reader(self._listener, heard.set)
        try:
            await heard.wait()
        finally:
            loop.remove_reader(self._listener)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()
        with suppress(OSError):
            Path(self.path).unlink()


class Begun:
    """A command that has begun. As a context manager it ends what is left of it."""

    def __init__(self, process: Identity, what: str, owners: Collection[str], ledger: ChildLedger | None) -> None:
        """Count the process as ours: `owners` are the sessions that it may read."""
        self.process = process
        descent.adopted(process, owners)
        self._entry = None if ledger is None else ledger.open()
        if self._entry is not None:
            self._entry.record(process, what.rpartition("/")[2])

    async def stop(self) -> None:
        """Send SIGTERM to the group, and SIGKILL after `GRACE_S`; does nothing if the process has ended."""
        self._signal(signal.SIGTERM)
        await signal_all([self.process], 0, GRACE_S)
        self._signal(signal.SIGKILL)
        await signal_all([self.process], 0, KILL_S)

    def refuse(self) -> None:
        """End a process that has not begun yet."""
        self._signal(signal.SIGKILL)
        self._let_go()

    def _let_go(self) -> None:
        descent.forget(self.process.pid)
        if self._entry is not None:
            self._entry.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.stop()
        finally:
            self._signal(signal.SIGKILL)
            self._let_go()

    def _signal(self, number: int) -> None:
        # It leads its group, so as long as it lives no other group has its number.
        if is_alive(self.process):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


def _asking(connection: socket.socket) -> Identity:
    """Return the process at the other end. Raises OSError unless it is one of this user here that leads its session."""
    if sys.platform == "darwin":
        uid, pid = os.getuid(), connection.getsockopt(0, 2)  # the directory is the user's own
    else:
        pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    process = identify(pid) if uid == os.getuid() and pid > 0 else None
    status = None if process is None else KERNEL.status(pid)
    if process is None or status is None or status.session != pid:
        raise OSError("the process that asks is not one of this user on this machine")
    return process
