"""Asks the daemon what to run, and runs it. What an editor starts in its terminal (`zotd.process.start_gate`).

    python -I -S gated_command.py SOCKET [WORDS FOR PEOPLE]

    here      a session and a group of its own ──> SOCKET ──> command, directory, environment ──> becomes the command
    parent    waits, and exits like the command

Nothing runs unless the daemon sends all of it, so the daemon knows whether the command has begun. It is no part of the
daemon and loads nothing of it.
"""

import json
import os
import signal
import socket
import sys

NOT_RUN = 126
"""The exit code when the daemon does not want the command to run any more."""

WAIT_S = 30.0
"""Longest wait for the daemon, which answers at once or not at all."""

OF_TERMINAL = ("TERM", "COLORTERM")
"""Variables that describe the terminal; the editor knows better than the session."""


def main(path: str) -> int:
    """Run the command in a child, and return its exit code, 128 + N after signal N."""
    child = os.fork()
    if child == 0:
        # Without the terminal as the controlling one: what is left in the background survives it, nothing can ask in it.
        os.setsid()
        become(path)
    while True:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except KeyboardInterrupt:  # ctrl+c in the terminal, which is not the command's
            os.killpg(child, signal.SIGINT)
        else:
            return code if code >= 0 else 128 - code


def become(path: str) -> None:
    """Become what the daemon says; does not return."""
    try:
        order = json.loads(asked(path))
    except (OSError, ValueError):
        os.write(2, b"zot has not run this here; see the session\n")
        os._exit(NOT_RUN)
    try:
        # Python ignores these, and what is ignored stays so.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(order["cwd"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        seen = {name: os.environ[name] for name in OF_TERMINAL if name in os.environ}
        os.execve(order["argv"][0], order["argv"], {**order["env"], **seen})  # noqa: S606  (it is the purpose)
    except OSError as error:
        os.write(2, f"zot: {error.filename}: {error.strerror}\n".encode(errors="backslashreplace"))
        os._exit(127)


def asked(path: str) -> bytes:
    """Return what the daemon sends, a line. Raises ValueError if it sends less."""
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.settimeout(WAIT_S)
        daemon.connect(path)
        while not received.endswith(b"\n"):
            part = daemon.recv(1 << 16)
            if not part:
                raise ValueError("it is cut")
            received += part
    return bytes(received)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
