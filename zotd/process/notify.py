"""One datagram to the service manager, as `sd_notify(3)` has it. No library: systemd's needs its C headers."""

import socket
from collections.abc import Sequence

SEND_S = 0.5
"""Longest wait for a manager that does not read, which holds up everything; it takes 30 us."""


def notify(address: str, words: str, fds: Sequence[int] = ()) -> None:
    """Tell it `words`, with copies of these descriptors; raises `OSError` when it does not hear.

    `address`: as in `NOTIFY_SOCKET`; `@` at its beginning stands for an abstract one.
    """
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.settimeout(SEND_S)
        manager.connect(name)
        socket.send_fds(manager, [words.encode()], fds)
