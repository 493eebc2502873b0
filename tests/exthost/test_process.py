import asyncio
import errno
import time

import pytest

from tests.exthost.conftest import ENV
from zotd.exthost.log import ExtensionLog
from zotd.exthost.process import ExtensionProcess, how_it_ended, why_not_started
from zotd.process import start_service


class Reader:
    """A listener that takes its time with each line, and counts the turns that others had meanwhile."""

    def __init__(self, *, line_s=0.0, asked_for=True):
        self.lines = []
        self.turns = 0
        self.ended = asyncio.Event()
        self._line_s = line_s
        self._asked_for = asked_for
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self):
        if not self.ended.is_set():
            self.turns += bool(self.lines)
            asyncio.get_running_loop().call_soon(self._turn)

    def line(self, line):
        self.lines.append(line)
        if self._line_s:
            time.sleep(self._line_s)
        return self._asked_for

    def closed(self, pipe):
        pass

    def exited(self, reason):
        self.lines.append(reason)
        self.ended.set()


async def listen(tmp_path, reader, command):
    """Run a shell command to its end."""
    log = ExtensionLog(tmp_path / "log")
    ExtensionProcess(
        lambda listener: start_service(["sh", "-c", command], cwd=str(tmp_path), env=ENV, listener=listener),
        listener=reader,
        log=log,
    )
    async with asyncio.timeout(60):
        await reader.ended.wait()
    log.close()


async def test_many_lines_at_once_leave_the_loop_to_others_in_between(tmp_path):
    reader = Reader(line_s=0.002)
    await listen(tmp_path, reader, "seq 100")
    assert len(reader.lines) == 101
    assert reader.turns > 10


async def test_every_line_of_a_process_that_has_ended_comes_before_its_end(tmp_path):
    """Also those beyond what it may say unasked, which a process that lives would have to wait for: 14 s here."""
    reader = Reader(asked_for=False)
    await listen(tmp_path, reader, "yes y | head -n 32000")
    assert reader.lines == [*([b"y"] * 32_000), "exited with code 0"]


@pytest.mark.parametrize(
    ("code", "last_words", "sentence"),
    [
        (0, b"", "exited with code 0"),
        (3, b"one\ntwo \n\n", "exited with code 3: two"),
        (1, b"caf\xe9", "exited with code 1: caf\N{REPLACEMENT CHARACTER}"),
        (1, b"x" * 5000, "exited with code 1: " + "x" * 200),
        (-9, b"", "was ended by SIGKILL"),
        (-63, b"", "was ended by signal 63"),
    ],
)
def test_an_end_is_told_with_the_last_words(code, last_words, sentence):
    assert how_it_ended(code, last_words) == sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FileNotFoundError(errno.ENOENT, "?", "/x"), "could not be started: /x: no such file or directory"),
        (OSError(errno.EMFILE, "?"), "could not be started: prog: too many open files"),
        (
            ValueError("embedded null byte"),
            "could not be started: there is a NUL in its arguments or in the environment",
        ),
    ],
)
def test_a_failed_start_is_reported(error, sentence):
    assert why_not_started(error, ["prog"]) == sentence
