"""Runs a command in a jail without a network such that it reaches hosts through the proxy. Linux.

This is the way of commands for which no network namespace was made ahead of need (`NetworkOutlet.entrance`).

    python -I -S -c SOURCE SOCKET COMMAND...

It listens on the loopback of the jail's network namespace, hands that listener over to the proxy through the Unix socket
SOCKET, and becomes COMMAND. A socket belongs for ever to the namespace in which it was made, so the proxy, which is
outside, then accepts the connections of the command itself: nothing stays in between that would copy bytes or could be
stopped. The source is given to the interpreter as a text, because the file may lie where commands may write.

It is no part of the daemon: it loads nothing but built-in modules, because each command waits for it.
"""

import _signal  # type: ignore[import-not-found]  # `signal` itself would load `enum`, for 5 ms
import _socket
import os
import sys

ADDRESS = ("127.0.0.1", 3128)
"""Where the proxy is in the jail. The namespace is new, so the port is free."""

ANSWER_S = 30
"""How long to wait for the proxy, in seconds."""


def main(path: str, command: "list[str]") -> None:
    """Hand over, and become the command. Without a proxy it says so, and the command has no network."""
    try:
        hand_over(path)
    except OSError as error:
        os.write(2, f"zot: the proxy cannot be reached, so there is no network: {error}\n".encode())
    else:
        os.environ.update(variables())
    restore_what_python_changes()
    try:
        os.execvp(command[0], command)  # noqa: S606  (it is the purpose)
    except OSError as error:
        os.write(2, f"zot: {command[0]} cannot be run: {error.strerror}\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def hand_over(path: str) -> None:
    """Give a listener to the proxy. Raises OSError."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(ADDRESS)
    listener.listen(128)
    proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    proxy.settimeout(ANSWER_S)
    proxy.connect(path)
    descriptor = listener.fileno().to_bytes(4, sys.byteorder)
    proxy.sendmsg([b"1"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor)])
    # The proxy has to see this process while it exists: its end is the end of the command.
    if not proxy.recv(1):
        raise OSError("it has refused")


def variables() -> "dict[str, str]":
    """Return the variables that name the proxy to programs."""
    url = f"http://{ADDRESS[0]}:{ADDRESS[1]}"
    # ALL_PROXY is HTTP as well: some clients cannot start with a SOCKS proxy.
    proxies = {name: url for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in (upper, upper.lower())}
    # The loopback of the jail, on which servers of the command listen.
    direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return {**proxies, **direct, "NODE_USE_ENV_PROXY": "1"}  # the last one for the fetch() of Node


def restore_what_python_changes() -> None:
    """Give the command the signals and the locale that this interpreter was started with."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as environ:
        if not any(entry.startswith(b"LC_CTYPE=") for entry in environ.read().split(b"\0")):
            os.environ.pop("LC_CTYPE", None)  # set by Python in the locale C (PEP 538)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
