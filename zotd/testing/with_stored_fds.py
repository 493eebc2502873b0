"""Runs a command as a service manager would: `python with_stored_fds.py ADDRESS COMMAND...`.

It gets the stored descriptors from `zotd.testing.fd_store.ServiceManager`, puts them where `sd_listen_fds(3)` wants
them, and becomes the command. Standard library only.
"""

import fcntl
import json
import os
import socket
import sys

FIRST_FD = 3
MAX_FDS = 253
NAMES_BYTES = 64 * 1024


def main(address: str, *command: str) -> None:
    """Become the command."""
    with socket.socket(socket.AF_UNIX) as manager:
        manager.connect(address)
        names, fds, _, _ = socket.recv_fds(manager, NAMES_BYTES, MAX_FDS)
    above = FIRST_FD + len(fds)
    words = list(command)
    if "--ready-fd" in words:  # it may be in the way
        place = words.index("--ready-fd") + 1
        ready = fcntl.fcntl(int(words[place]), fcntl.F_DUPFD, above)
        os.set_inheritable(ready, True)
        words[place] = str(ready)
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in fds]
    for number, fd in enumerate(moved, FIRST_FD):
        os.dup2(fd, number)
    if fds:
        listen = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(fds))}
        os.environ.update(listen, LISTEN_FDNAMES=":".join(json.loads(names)))
    os.execvp(words[0], words)  # noqa: S606  (without a shell is the point)


if __name__ == "__main__":
    main(*sys.argv[1:])
