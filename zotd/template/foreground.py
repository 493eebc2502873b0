"""What only a process of the terminal's session can do, for a program that a template process has started.

Such a program is in a session of its own. Its client is in the terminal's, and does this for it. In a program that was
started cold, the functions do it themselves.
"""

import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence

from zotd.template import thin

_client: socket.socket | None = None
_terminal: int | None = None


def attach(client: socket.socket, terminal: int | None) -> None:
    """Use this client, and the descriptor of its controlling terminal, from now on."""
    global _client, _terminal
    _client, _terminal = client, terminal


def stop_job() -> None:
    """Stop the shell's job, as Ctrl-Z does; blocks until it continues. Without job control nothing stops."""
    if _client is None:
        os.kill(0, signal.SIGTSTP)
        return
    _client.sendall(struct.pack(thin.ANSWER, thin.STOP, 0))
    _answer(_client)


async def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command of the user on the terminal, such as an editor; return its exit code, or minus a signal's number.

    If the waiting task is cancelled, the command keeps running. Raises OSError if it cannot be started.
    """
    import asyncio  # noqa: PLC0415  (`zot -p`, which needs only the terminal, does not pay for it)

    if _client is None:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
        return await process.wait()
    arguments = b"\0".join(map(os.fsencode, command))
    variables = b"\0".join(os.fsencode(f"{name}={value}") for name, value in environment.items())
    packed = struct.pack(thin.LENGTH, len(arguments)) + arguments + variables
    _client.sendall(struct.pack(thin.ANSWER, thin.RUN, len(packed)) + packed)
    loop, answered = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(_client, answered.set)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(_client)
    kind, value = _answer(_client)
    if kind == thin.NOT_RUN:
        raise OSError(value, os.strerror(value), command[0])
    return value


def open_terminal() -> int:
    """Return a new descriptor of the controlling terminal. Raises OSError if there is none."""
    if _terminal is None:
        return os.open("/dev/tty", os.O_RDWR)
    return os.dup(_terminal)


def _answer(client: socket.socket) -> tuple[bytes, int]:
    """Return the client's next answer. Without a client this process is about to be killed."""
    found = client.recv(struct.calcsize(thin.ANSWER), socket.MSG_WAITALL)
    if len(found) < struct.calcsize(thin.ANSWER):
        raise ConnectionError("the client has ended")
    kind, value = struct.unpack(thin.ANSWER, found)
    return kind, value
