"""`zotctl pipe`: connects standard input and output to the daemon, for a client on another machine (`zotd.client.ssh`)."""

import argparse
import json
import os
import socket
import sys
import threading
from contextlib import suppress

from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.errors import ClientError, code_of
from zotd.client.ssh import MARK

PIECE_BYTES = 64 * 1024

EPILOG = """\
example: zotctl pipe --autostart

`zot --host HOST` runs this on HOST by ssh. Prints a line that begins with "zotctl-pipe", and then what the daemon sends.
"""


def add(commands: Subparsers) -> None:
    """Register `pipe`."""
    parser = commands.add_parser("pipe", help="connect standard input and output to the daemon, for ssh", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--autostart", action="store_true", help="start the daemon if none runs")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    where = place.of(os.environ)
    try:
        daemon = where.ensure() if args.autostart else where.open()
    except ClientError as error:
        _say({"error": str(error), "code": code_of(error)})
        return 1
    with daemon:
        _say({})
        # A daemon thread: it waits for input when the daemon has ended the connection.
        threading.Thread(target=_send, args=(daemon,), name="input", daemon=True).start()
        with suppress(OSError):  # the client has gone
            while piece := daemon.recv(PIECE_BYTES):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
    return 0


def _send(daemon: socket.socket) -> None:
    with suppress(OSError):  # the daemon has gone
        while piece := os.read(0, PIECE_BYTES):
            daemon.sendall(piece)
        daemon.shutdown(socket.SHUT_WR)


def _say(what: dict[str, str]) -> None:
    sys.stdout.buffer.write(MARK + json.dumps(what).encode() + b"\n")
    sys.stdout.buffer.flush()
