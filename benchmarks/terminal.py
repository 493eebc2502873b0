"""A program in a terminal that the benchmark is: it reads what is drawn as soon as it is written, and types."""

import os
import pty
import re
import select
import signal
import termios
import time
from collections.abc import Mapping

import psutil

from benchmarks import rig

COLUMNS, ROWS = 100, 30

WAIT_S = 30.0
"""How long something may take to be drawn; nothing that is measured takes a tenth of it."""

READ_BYTES = 4096
"""What the kernel gives at once."""

THIN_BYTES = 64
"""The same of a thin line."""

SEARCHED_BYTES = 4 * READ_BYTES
"""Of what was drawn, in which words are looked for: they came with the last read, and colours between them."""

TERM = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}

ANSWERS = {
    b"\x1b]11;?\x1b\\": b"\x1b]11;rgb:1616/1818/1a1a\x1b\\",  # OSC 11: the colour of the background
    b"\x1b[c": b"\x1b[?62;22c",  # DA1: what kind of terminal this is
    b"\x1b[6n": b"\x1b[1;1R",  # DSR 6: where the cursor is
}
"""What programs ask, and what is answered, at once."""

LONGEST_QUESTION = max(map(len, ANSWERS))

ESCAPE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78])")
"""What a terminal does not show."""


class Terminal:
    """One program with the terminal as its input, output and complaints; it is the leader of its session."""

    def __init__(self, *command: str, env: Mapping[str, str], bytes_s: int | None = None) -> None:
        """`bytes_s`: it reads no faster, as behind a thin line."""
        self._bytes_s = bytes_s
        self.started = time.perf_counter()
        """By the clock of `wait`."""
        self._fd, slave = pty.openpty()
        termios.tcsetwinsize(self._fd, (ROWS, COLUMNS))
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0)]
        duplicates = [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
        all_actions = [*actions, *duplicates, (os.POSIX_SPAWN_CLOSE, self._fd)]
        self._pid = os.posix_spawnp(command[0], command, {**env, **TERM}, file_actions=all_actions, setsid=True)
        os.close(slave)
        self.process = psutil.Process(self._pid)
        self._drawn = bytearray()
        self._cut = b""
        """The end of what was read last, in which a question may begin."""

    def close(self) -> None:
        """End the program with SIGTERM, and read what it still writes."""
        os.kill(self._pid, signal.SIGTERM)
        deadline = time.perf_counter() + WAIT_S
        while self._take(deadline):
            pass
        os.close(self._fd)
        os.waitpid(self._pid, 0)

    def type(self, keys: str) -> float:
        """Type them; the moment at which that began. What was drawn before is forgotten."""
        self._drawn.clear()
        start = time.perf_counter()
        self.send(keys)
        return start

    def send(self, keys: str) -> None:
        """Type them, and keep in mind what was drawn."""
        os.write(self._fd, keys.encode())

    def wait(self, words: str) -> float:
        """The moment at which these words, which stand on one row, were drawn after what was typed last."""
        deadline = time.perf_counter() + WAIT_S
        while words.encode() not in ESCAPE.sub(b"", self._drawn[-SEARCHED_BYTES:]):
            if not self._take(deadline):
                raise RuntimeError(f"{words!r} was not drawn; {self.drawn[-2000:]!r} was")
        return time.perf_counter()

    def look(self, seconds: float) -> None:
        """Read what is drawn meanwhile."""
        deadline = time.perf_counter() + seconds
        while self._take(deadline):
            pass

    @property
    def drawn(self) -> str:
        """What was drawn since something was typed, without colours and movements."""
        return ESCAPE.sub(b"", self._drawn).decode(errors="replace")

    def cpu_percent(self, seconds: float) -> float:
        """Of a core, while it is left alone for so long."""
        before = rig.cpu_s(self.process)
        self.look(seconds)
        return (rig.cpu_s(self.process) - before) / seconds * 100

    def _take(self, deadline: float) -> bool:
        """Read once; False: the time is over, or the program has ended."""
        left = deadline - time.perf_counter()
        if left <= 0 or not select.select([self._fd], [], [], left)[0]:
            return False
        try:
            read = os.read(self._fd, READ_BYTES if self._bytes_s is None else THIN_BYTES)
        except OSError:  # EIO: the other end is closed
            return False
        if self._bytes_s is not None:
            time.sleep(len(read) / self._bytes_s)
        for question, answer in ANSWERS.items():
            asked = self._cut[1 - len(question) :] + read  # one byte less than the question: none is answered twice
            for _ in range(asked.count(question)):
                os.write(self._fd, answer)
        self._cut = (self._cut + read)[-LONGEST_QUESTION:]
        self._drawn += read
        return bool(read)
