"""Sends one datagram to the service manager, as `sd_notify(3)`. systemd's own binding needs C headers to build."""

import socket
from collections.abc import Sequence

SEND_S = 0.5
"""Timeout, in seconds, for a manager that does not read. The call blocks the event loop; it usually takes 30 us."""


def notify(address: str, words: str, fds: Sequence[int] = ()) -> None:
    """Send `words` and copies of `fds` to the socket at `address`.

    `address` is the value of `NOTIFY_SOCKET`; a leading `@` means an abstract socket. Raises `OSError` on failure.
    """
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.settimeout(SEND_S)
        manager.connect(name)
        socket.send_fds(manager, [words.encode()], fds)
