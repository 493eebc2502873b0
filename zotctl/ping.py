"""`zotctl ping`: checks whether the daemon answers."""

import os
import sys

from zotd import paths
from zotd.client.environment import HOST

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than a ping
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: zotctl ping [--autostart]

Check whether the daemon answers. Exit code 0 if it does, otherwise 1. --autostart starts it if none runs.

example: zotctl ping && echo alive"""

ANSWER_S = 2.0
"""Time limit in seconds; longer than the worst pause of a busy daemon."""


QUICK_S = 0.5
"""Time limit of the attempt that imports nothing. After it the usual one follows, which says what is wrong."""

QUESTION = b'{"type":"ping","id":"1"}\n'

ANSWER_BYTES = 4096

CREDENTIAL_BYTES = 12
"""Linux `struct ucred`: pid, uid, gid."""


def main(argv: "Sequence[str]") -> int:
    """Run with the arguments after `ping` and return the exit code."""
    if not argv and _answers_quickly():
        print("pong")
        return 0
    from zotctl import fast_cli  # noqa: PLC0415  (with `json` and `socket`, which take as long to import as a ping)
    from zotd.client.errors import ClientError  # noqa: PLC0415

    flags = fast_cli.flags(argv, USAGE, frozenset({"--autostart"}))
    try:
        with fast_cli.connect(fast_cli.socket_path(), ANSWER_S, autostart="--autostart" in flags) as connection:
            connection.call("ping", timeout_s=ANSWER_S)
    except ClientError as error:
        from zotd.sanitize import harmless  # noqa: PLC0415  (only a failure needs it)

        sys.stderr.write(f"zotctl: {harmless(str(error))}\n")  # it may quote another process
        return 1
    print("pong")
    return 0


def _answers_quickly() -> bool:
    """Return whether a daemon of this user on this machine answers at once; False: it may all the same."""
    if os.environ.get(HOST) or sys.platform != "linux":
        return False
    import _socket  # noqa: PLC0415  (Linux; `socket` takes 4 ms to import)

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(QUICK_S)
        connection.connect(paths.socket_path(os.environ))
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, CREDENTIAL_BYTES)
        if int.from_bytes(credentials[4:8], sys.byteorder) != os.geteuid():
            return False
        connection.send(QUESTION)
        answer = connection.recv(ANSWER_BYTES)
    except (OSError, paths.UnsafePathError):
        return False
    finally:
        connection.close()
    return answer.endswith(b"\n") and b'"success":true' in answer and b'"pong":true' in answer
