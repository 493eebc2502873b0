"""A service manager for tests, as far as it keeps descriptors: a store, and the daemons that it starts with them.

    with ServiceManager(folder) as manager:
        daemon = DaemonProcess(folder, manager.env, wrapper=manager.wrapper)

What a daemon stores is what the next one of that wrapper finds. `FakeStore` is the store alone, without a process.
"""

import json
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from zotd.process.fdstore import UNIT

MAX_FDS = 253
"""Most that the kernel passes at once."""

WRAPPER = Path(__file__).with_name("with_stored_fds.py")


class FakeStore:
    """Satisfies `zotd.process.fdstore.DescriptorStore`; usable by several threads."""

    def __init__(self) -> None:
        self._held: list[tuple[str, int]] = []
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """Names of the stored descriptors, one for each."""
        with self._lock:
            return [name for name, _ in self._held]

    def put(self, name: str, fds: Sequence[int]) -> bool:
        """See `Store`."""
        with self._lock:
            self._held += [(name, os.dup(fd)) for fd in fds]
        return True

    def remove(self, name: str) -> None:
        """See `Store`."""
        with self._lock:
            gone = [fd for one, fd in self._held if one == name]
            self._held = [(one, fd) for one, fd in self._held if one != name]
        for fd in gone:
            os.close(fd)

    def found(self) -> dict[str, list[int]]:
        """Copies, as the next daemon gets them: its own, the newest first, as systemd gives them."""
        found: dict[str, list[int]] = {}
        with self._lock:
            for name, fd in reversed(self._held):
                found.setdefault(name, []).append(os.dup(fd))
        return found

    def close(self) -> None:
        """Let go of everything."""
        for name in set(self.names):
            self.remove(name)


class ServiceManager:
    """A socket that hears what daemons tell, and one that gives them what was stored."""

    def __init__(self, folder: Path) -> None:
        """Its sockets are made in `folder`."""
        self.store = FakeStore()
        self.said: list[str] = []
        """Every message that was not about the store."""
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._give = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._address = folder / "notify"
        self._giver = folder / "give"
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._hear, self._serve)]
        self._heard = threading.Condition()
        self._count = 0
        self._pinged = 0

    def __enter__(self) -> Self:
        self._notify.bind(str(self._address))
        self._give.bind(str(self._giver))
        self._give.listen()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell("stop")
        self._give.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._notify.close()
        self._give.close()
        self.store.close()

    @property
    def env(self) -> Mapping[str, str]:
        """What it says to a daemon."""
        return {"NOTIFY_SOCKET": str(self._address), UNIT: "zotd-under-test.service"}

    @property
    def wrapper(self) -> Sequence[str]:
        """What starts the command behind it with everything that is stored."""
        return [sys.executable, "-I", "-S", str(WRAPPER), str(self._giver)]

    def settle(self) -> None:
        """Wait until everything is heard that was told before this call."""
        with self._heard:
            self._pinged += 1
            wanted = self._pinged
        self._tell("ping")
        with self._heard:
            assert self._heard.wait_for(lambda: self._count >= wanted, timeout=20)

    # --- its threads ------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        while True:
            data, fds, _, _ = socket.recv_fds(self._notify, 4096, MAX_FDS)
            words = data.decode()
            if words == "stop":
                return
            if words == "ping":
                with self._heard:
                    self._count += 1
                    self._heard.notify_all()
            else:
                self._carry_out(words, fds)

    def _carry_out(self, words: str, fds: Sequence[int]) -> None:
        fields = dict(line.split("=", 1) for line in words.splitlines())
        if "FDSTORE" in fields:
            self.store.put(fields["FDNAME"], fds)
        elif "FDSTOREREMOVE" in fields:
            self.store.remove(fields["FDNAME"])
        else:
            self.said.append(words)
        for fd in fds:
            os.close(fd)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._give.accept()
            except OSError:
                return
            self.settle()  # the last words of a daemon that was killed count
            found = [(name, fd) for name, fds in self.store.found().items() for fd in fds]
            with client:
                names = json.dumps([name for name, _ in found]).encode()
                socket.send_fds(client, [names], [fd for _, fd in found])
            for _, fd in found:
                os.close(fd)

    def _tell(self, words: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as teller:
            teller.sendto(words.encode(), str(self._address))
