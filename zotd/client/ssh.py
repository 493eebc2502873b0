"""Connects to the daemon of another machine with the system's ssh, without a door or a token (`docs/remote.md`).

    client <- lines -> socket pair <- lines -> ssh <- lines -> `zotctl pipe` there <- lines -> zotd's socket

`zotctl pipe` first prints one line that begins with `MARK`. What a login script of the other machine prints before is ignored.
"""

import json
import re
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from zotd.client.blocking import SEND_S, limit_sends
from zotd.client.errors import ClientError, NoAnswerError, NotRunningError, StartError

MARK = b"zotctl-pipe "
"""Begins the line with which `zotctl pipe` says that lines of the protocol follow, or why not."""

CONNECT_S = 30.0
"""Longest time until the daemon there can be used, with its start."""

END_S = 1.0
"""Longest wait for the exit code of an ssh that has closed its output."""

NOISE_BYTES = 64 * 1024
"""Most that a login script may print."""

OPTIONS = (
    "-T",
    *("-o", "BatchMode=yes"),  # the terminal is the client's, and it connects more than once
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=2"),  # a silent connection is lost after 45 s
)

_DESTINATION = re.compile(r"(?:[A-Za-z0-9_][\w.\-]*@)?[A-Za-z0-9_][\w.\-]*")
"""Begins with no dash, which would be an option of ssh."""

_NOT_FOUND, _SSH_FAILED = 127, 255
"""Exit codes of a shell without the program, and of ssh itself."""

# ssh leaves an ignored SIGINT alone. Ctrl-C is for the client, which needs the connection to abort a run.
_UNINTERRUPTED = 'trap "" INT; exec "$@"'

# In a login shell of any kind. `pip install --user` and pipx install where few of them look.
_THERE = "exec sh -c 'PATH=\"$PATH:$HOME/.local/bin\" exec zotctl pipe{}'"


class SshHost(NamedTuple):
    """What ssh connects to: a name of its configuration, or a host."""

    destination: str
    port: int | None = None

    @property
    def url(self) -> str:
        """The host in the form that `parsed` accepts."""
        return f"ssh://{self.destination}" + (f":{self.port}" if self.port else "")


def parsed(words: str) -> SshHost:
    """Parse `[USER@]HOST` or `ssh://[USER@]HOST[:PORT]`; raises ClientError."""
    destination, port = words, None
    if words.startswith("ssh://"):
        try:
            parts = urlsplit(words)
            port = parts.port
        except ValueError as error:
            raise ClientError(f"--host {words!a}: {error}") from error
        destination = parts.netloc.removesuffix(f":{port}")
        if parts.path not in {"", "/"} or parts.query or parts.fragment:
            destination = ""
    if not _DESTINATION.fullmatch(destination):
        raise ClientError(f"--host must be HOST or ssh://[USER@]HOST[:PORT] for ssh, or wss://HOST:PORT, not {words!a}")
    return SshHost(destination, port)


def open_socket(host: SshHost, *, starts: bool, limit_s: float = CONNECT_S) -> socket.socket:
    """Return a blocking socket to the daemon there, like `blocking.open_socket`; the caller closes it, which ends ssh.

    Args:
        host: where to connect.
        starts: start the daemon there if none runs.
        limit_s: timeout, in seconds.

    Raises:
        NotRunningError: no daemon runs there, and `starts` is false.
        StartError: it could not be started there.
        NoAnswerError: that took too long.
        ClientError: any other failure, also if ssh would ask for a password or about an unknown host.
    """
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as complaints:
        end = theirs.fileno()
        try:
            process = subprocess.Popen(_command(host, starts=starts), stdin=end, stdout=end, stderr=complaints)  # noqa: S603  (the host begins with no dash)
        except OSError as error:
            ours.close()
            raise ClientError(f"ssh cannot be run: {error.strerror}") from error
        theirs.close()
        # Reaps it. A daemon thread, so that the exit of the program does not wait for the network.
        threading.Thread(target=process.wait, name=f"ssh to {host.destination}", daemon=True).start()
        try:
            line = _marked_line(ours, time.monotonic() + limit_s)
            _check(host, line, process, complaints)
        except BaseException:
            ours.close()
            process.kill()
            raise
    ours.settimeout(None)
    limit_sends(ours, SEND_S)
    return ours


def _command(host: SshHost, *, starts: bool) -> list[str]:
    port = [] if host.port is None else ["-p", str(host.port)]
    there = _THERE.format(" --autostart" if starts else "")
    return ["sh", "-c", _UNINTERRUPTED, "sh", "ssh", *OPTIONS, *port, "--", host.destination, there]


def _marked_line(ours: socket.socket, deadline: float) -> bytes | None:
    """Return what follows `MARK` in its line, and read nothing beyond; None at the end. Raises NoAnswerError."""
    line, seen = bytearray(), 0
    while seen < NOISE_BYTES:
        ours.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            byte = ours.recv(1)
        except TimeoutError as error:
            raise NoAnswerError("zotd did not answer over ssh in time") from error
        if not byte:
            return None
        seen += 1
        line += byte
        if byte == b"\n":
            if line.startswith(MARK):
                return bytes(line.removeprefix(MARK))
            line.clear()
    return None


def _check(host: SshHost, line: bytes | None, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
    """Raise the error that `zotctl pipe` has told in its line, or that of a connection that ended before it (None)."""
    if line is None:
        raise _failed(host, process, complaints)
    said = json.loads(line)
    if (sentence := said.get("error")) is not None:
        kind = {"not_running": NotRunningError, "start_failed": StartError}.get(said.get("code"), ClientError)
        raise kind(f"{host.destination}: {sentence}")


def _failed(host: SshHost, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> ClientError:
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    complaints.seek(0)
    said = complaints.read(NOISE_BYTES).decode(errors="replace").strip().split("\n")[-1].strip()
    if process.returncode == _NOT_FOUND:
        return ClientError(f"{host.destination} has no zotctl; install zotd there")
    if process.returncode == _SSH_FAILED:
        return ClientError(f"ssh {host.destination} has failed, and must work without a password: {said}")
    return ClientError(f"`zotctl pipe` has failed on {host.destination}: {said or f'exit code {process.returncode}'}")
