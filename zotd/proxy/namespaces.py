"""Network namespaces that are made ahead of need, because a command would wait for its own: 15 ms, in which Python starts.

NamespaceStock.fill ──> `namespace_maker.py`, a process that ends ──> ReadyNamespace ──take()──> one command each

When there is none, for whatever reason, the command makes its own (`zotd.jail.handover`); nothing waits for the stock.
"""

import asyncio
import functools
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from zotd.proxy.accepting import readable

AHEAD = 8
"""Namespaces in a full stock. Each takes 0.2 MB of the kernel's memory, and two or three descriptors."""

FILL_S = 30.0
"""Limit for filling the stock, in seconds; it takes 50 ms."""

END_S = 1.0
"""Longest wait for a process that is given up, in seconds: for its own end, and after SIGKILL."""

RETRY_S = 600.0
"""Pause after a failure, in seconds. Most are properties of the machine, such as users who may not make namespaces."""

REASON_BYTES = 1024
"""Longest reason that a maker gives."""

DESCRIPTORS = 3
"""Most descriptors in a packet of a maker."""

SYSTEM_PATH = "/usr/bin:/bin:/run/current-system/sw/bin"
"""Where `nsenter` and `bwrap` are looked for. They run outside of any jail, and commands may have put others on the PATH."""

TRIAL = ("--die-with-parent", "--ro-bind", "/", "/", "--", "/bin/sh", "-c", ":")
"""Arguments of `bwrap` that must work in a namespace before a command gets one: a jail makes namespaces in it."""

log = logging.getLogger(__name__)


class ReadyNamespace:
    """A network namespace with a loopback on which nothing but `listener` listens; for one command. Owns descriptors."""

    def __init__(self, nsenter: str, listener: socket.socket, network: int, user: int | None) -> None:
        """Take ownership of the descriptors.

        Args:
            nsenter: absolute path of that program.
            listener: a socket in the namespace.
            network: the namespace.
            user: the user namespace that it belongs to; None: that of this process.
        """
        self.listener = listener
        self._nsenter = nsenter
        self._network = network
        self._user = user

    @property
    def entry(self) -> list[str]:
        """The words in front of a command that run it in here. They work until `close`."""
        # By the name of the descriptor in this process: a child gets no copy of it.
        of_user = [] if self._user is None else ["--preserve-credentials", f"--user={_name_of(self._user)}"]
        return [self._nsenter, *of_user, f"--net={_name_of(self._network)}", "--"]

    def close(self) -> None:
        """Give it up. It ends with the last process in it."""
        self.listener.close()
        for descriptor in (self._network, self._user):
            if descriptor is not None:
                os.close(descriptor)


class NamespaceStock:
    """Namespaces that no command has used. Used on one event loop."""

    def __init__(self, size: int, maker: Sequence[str] | None = None, fill_s: float = FILL_S) -> None:
        """Make nothing yet.

        Args:
            size: how many there are when it is full; with 0 there are never any.
            maker: the command that makes them, without the number; `maker_words()` if omitted.
            fill_s: limit for `fill`, in seconds.
        """
        self._size = size
        self._maker = maker
        self._fill_s = fill_s
        self._ready: list[ReadyNamespace] = []
        self._filling = asyncio.Lock()
        self._is_tried = False
        self._retry_at = 0.0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._ready)

    @property
    def is_low(self) -> bool:
        """Whether it is time to fill the stock: a quarter is left, or less, and nothing fills it or has just failed to."""
        is_waiting = self._filling.locked() or asyncio.get_running_loop().time() < self._retry_at
        return len(self._ready) * 4 <= self._size and self._size > 0 and not is_waiting

    def take(self) -> ReadyNamespace | None:
        """Return one, which the caller closes; None: there is none."""
        return self._ready.pop(0) if self._ready else None

    async def fill(self) -> None:
        """Make as many as are missing. A failure is logged, and `is_low` is false for `RETRY_S`."""
        async with self._filling:
            missing = self._size - len(self._ready)
            if missing <= 0:
                return
            try:
                async with asyncio.timeout(self._fill_s):
                    await self._add(missing)
            except OSError as error:  # TimeoutError is one
                self._retry_at = asyncio.get_running_loop().time() + RETRY_S
                reason = str(error) or f"it takes longer than {self._fill_s:g} s"
                log.info("commands make their own network namespaces: none can be made ahead: %s", reason)

    def close(self) -> None:
        """Give all of them up."""
        while self._ready:
            self._ready.pop().close()

    async def _add(self, count: int) -> None:
        nsenter, bwrap = _found("nsenter"), _found("bwrap")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with closing(ours):
            ours.setblocking(False)
            with closing(theirs):
                maker = _Helper([*(self._maker or maker_words()), str(count)], theirs.fileno())
            with closing(maker):
                await self._add_all(ours, nsenter, bwrap)
                if code := await maker.ended():
                    raise OSError(f"what makes them failed with code {code}")

    async def _add_all(self, receiver: socket.socket, nsenter: str, bwrap: str) -> None:
        while namespace := await _received(receiver, nsenter):
            try:
                await self._try(namespace, bwrap)
            except BaseException:
                namespace.close()
                raise
            self._ready.append(namespace)

    async def _try(self, namespace: ReadyNamespace, bwrap: str) -> None:
        if self._is_tried:
            return
        with closing(_Helper([*namespace.entry, bwrap, *TRIAL], subprocess.DEVNULL)) as trial:
            if code := await trial.ended():
                raise OSError(f"a jail in one of them failed with code {code}")
        self._is_tried = True


class _Helper:
    """A process of a few milliseconds, in the session of this one: `process.exit` then leaves its exit code to us."""

    def __init__(self, argv: Sequence[str], stdin: int) -> None:
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(argv, stdin=stdin, stdout=quiet, stderr=quiet)  # noqa: S603  (our own program)

    async def ended(self) -> int:
        """Wait for the end, and return the exit code."""
        pidfd = os.pidfd_open(self._process.pid)
        try:
            await readable(pidfd)
        finally:
            os.close(pidfd)
        return self._process.wait()

    def close(self) -> None:
        """Wait for its end, and kill it if that does not come. Blocks for milliseconds; for `END_S` if it was stopped.

        `bwrap` is not killed at once: it may be about to start a child, which would stay.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
            return
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)


async def _received(receiver: socket.socket, nsenter: str) -> ReadyNamespace | None:
    """Return the next namespace of a maker; None: it has ended. Raises OSError with the reason that it gives."""
    await readable(receiver.fileno())
    told, descriptors, _, _ = socket.recv_fds(receiver, REASON_BYTES, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    if descriptors:
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        return ReadyNamespace(nsenter, listener, descriptors[1], descriptors[2] if len(descriptors) > 2 else None)
    if told:
        raise OSError(told.decode(errors="replace"))
    return None


def _found(name: str) -> str:
    path = shutil.which(name, path=SYSTEM_PATH)
    if path is None:
        raise FileNotFoundError(f"{name} is in none of {SYSTEM_PATH}")
    return path


def _name_of(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


@functools.cache
def maker_words() -> tuple[str, ...]:
    """Return the command that makes namespaces, without their number. It is not imported: only a process needs ctypes."""
    source = Path(__file__).with_name("namespace_maker.py").read_text(encoding="utf-8")
    return os.path.realpath(sys.executable), "-I", "-S", "-c", source
