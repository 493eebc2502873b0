"""Makes network namespaces for commands to come. Linux.

    python -I -S -c SOURCE COUNT

Standard input is a socket of packets. For each namespace a packet is sent, with descriptors: a socket that listens at
`ADDRESS` in it, the namespace, and the user namespace that it belongs to, if this user may not make one without. When
something fails, a packet with the reason, and without descriptors, is the last one. The process then ends: nothing stays
that could be stopped, killed or entered, and a namespace is there as long as there are descriptors of it.
"""

import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import sys

ADDRESS = ("127.0.0.1", 3128)
"""Where the proxy is in each of them; `zotd.jail.handover` has the same address."""

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS = 0x8914
IFREQ = struct.Struct("16sh22x")
"""`struct ifreq` with flags."""
IFF_UP = 1

LIBC = ctypes.CDLL(None, use_errno=True)


def main(count: int) -> None:
    """Make namespaces, and end. Also ends when its parent does, even while it is stopped."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with socket.socket(fileno=0) as receiver:
        try:
            owner = [] if os.geteuid() == 0 else [own_user_namespace()]
            for _ in range(count):
                listener, network = new_network()
                socket.send_fds(receiver, [b"1"], [listener.fileno(), network, *owner])
                listener.close()
                os.close(network)
        except BrokenPipeError:
            return  # the receiver has ended
        except OSError as error:
            receiver.send(str(error).encode())


def own_user_namespace() -> int:
    """Move into a new user namespace with the same user and group; return a descriptor of it."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # A group may be mapped only by a process that can no longer drop groups.
    for name, content in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with pathlib.Path(f"/proc/self/{name}").open("w", encoding="ascii") as file:
            file.write(content)
    return os.open("/proc/self/ns/user", os.O_RDONLY)


def new_network() -> "tuple[socket.socket, int]":
    """Move into a new network namespace with a loopback; return a listener in it, and a descriptor of it."""
    unshare(CLONE_NEWNET)
    listener = socket.socket()
    fcntl.ioctl(listener, SIOCSIFFLAGS, IFREQ.pack(b"lo", IFF_UP))
    listener.bind(ADDRESS)
    listener.listen(128)
    return listener, os.open("/proc/self/ns/net", os.O_RDONLY)


def unshare(kind: int) -> None:
    """Call `unshare(2)`, which `os` has from Python 3.12 on. Raises OSError."""
    if LIBC.unshare(kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
