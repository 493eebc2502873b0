"""One program that a template process is to fork: what it gets, and who hears of it."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from zotd.process.input import input_pair
from zotd.process.service import ForkedProcess
from zotd.template import fork_protocol
from zotd.template.fork_protocol import ForkRequest


class PendingFork:
    """One program on its way; made by `Forks.fork`."""

    def __init__(
        self, request: ForkRequest, then: Callable[[ForkedProcess | None], None], *, takes_descriptors: bool = False
    ) -> None:
        self.request = request
        self._takes_descriptors = takes_descriptors
        self._then = then
        self._connection: socket.socket | None = None
        self._pipes: tuple[int, ...] = ()
        self._is_over = False
        self._loop = asyncio.get_running_loop()

    def cancel(self) -> None:
        """Give the program up; `then` is not called."""
        self._is_over = True
        self._close()

    @property
    def is_over(self) -> bool:
        """Whether `then` was called, or the program was given up."""
        return self._is_over

    def send(self, control: socket.socket, answered: Callable[["PendingFork", bytes], None]) -> None:
        """Ask for the fork; `answered` is called once, with nothing if it has ended. Raises OSError."""
        theirs: list[int] = []
        ours: list[int] = []
        try:
            file = os.memfd_create("zot-fork")
            theirs.append(file)
            _write(file, self.request.packed())
            for is_input in (True, False, False):
                their, our = input_pair(is_socket=self._takes_descriptors) if is_input else os.pipe()[::-1]
                theirs.append(their)
                ours.append(our)
            self._connection, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with end:
                self._connection.setblocking(False)
                socket.send_fds(control, [fork_protocol.REQUEST], [end.fileno(), *theirs], socket.MSG_DONTWAIT)
        except OSError:
            for descriptor in ours:
                os.close(descriptor)
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._pipes = tuple(ours)
        self._loop.add_reader(self._connection, self._receive, self._connection, answered)

    def succeed(self, pid: int) -> None:
        """Hand the fork over to the caller."""
        connection, (stdin, stdout, stderr) = self._connection, self._pipes
        assert connection is not None
        self._is_over, self._connection, self._pipes = True, None, ()

        def go() -> None:
            with connection, suppress(OSError):  # it was killed, and its end is noticed by other means
                connection.send(fork_protocol.GO)

        self._then(ForkedProcess(pid, (stdin, stdout, stderr), go))

    def fail(self) -> None:
        """Tell the caller to start the program cold."""
        if not self._is_over:
            self.cancel()
            self._then(None)

    def _receive(self, connection: socket.socket, answered: Callable[["PendingFork", bytes], None]) -> None:
        self._loop.remove_reader(connection)
        try:
            answer = connection.recv(1 + fork_protocol.MAX_REASON_BYTES)
        except OSError:
            answer = b""
        answered(self, answer)

    def _close(self) -> None:
        if self._connection is not None:
            self._loop.remove_reader(self._connection)
            self._connection.close()
            self._connection = None
        for descriptor in self._pipes:
            os.close(descriptor)
        self._pipes = ()


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
