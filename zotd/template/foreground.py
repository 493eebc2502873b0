"""What only a process of the terminal's session can do, for a program that a template process has started.

Such a program is in a session of its own. Its client is in the terminal's, and does this for it. In a program that was
started cold, the functions do it themselves.
"""

import os
import signal
import socket
import struct

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
    _client.recv(len(thin.CONTINUED))


def open_terminal() -> int:
    """Return a new descriptor of the controlling terminal. Raises OSError if there is none."""
    if _terminal is None:
        return os.open("/dev/tty", os.O_RDWR)
    return os.dup(_terminal)
