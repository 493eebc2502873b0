"""Processes that outlive their daemon: several daemons one after the other, real processes, and the fake store."""

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager, closing

import pytest

from tests.process.conftest import ENV, Told, entries, who
from zotd.process import OrphanReaper, start_service
from zotd.process.census import census, is_alive
from zotd.process.fd_handover import MAX_BYTES, MIN_BYTES, READY, Label
from zotd.process.handover_store import HandoverStore
from zotd.tasks import contained
from zotd.testing.fd_store import FakeStore

LABEL = Label("workspace /project", "counter", "as it is")

ECHO = 'echo $$; while read -r line; do echo "got $line"; done'
"""A shell that prints its pid and what it reads; it ends with its stdin."""

FOR_GOOD, RESTARTING = "echo '12 zotd.service stop running'", "echo '12 zotd.service restart running'"


@pytest.fixture
def store():
    with closing(FakeStore()) as fake:
        yield fake


class Life:
    """The process management of one daemon."""

    def __init__(self, reaper, handover_store):
        self.reaper = reaper
        self.handover_store = handover_store

    def begin(self, script=ECHO, label=LABEL, condensed=list):
        """Start or adopt a service; return it with its listener and its handover."""
        told, handover = Told(), self.handover_store.handover(label, condensed=condensed)
        claim = self.reaper.claim("a test", (), handover)
        return start_service(["sh", "-c", script], cwd="/", env=ENV, listener=told, claim=claim), told, handover


@pytest.fixture
def life(tmp_path, store, monkeypatch):
    """`async with life() as one`: a daemon; `jobs` determines how it ends."""
    systemctl = tmp_path / "bin" / "systemctl"
    systemctl.parent.mkdir()
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{ENV['PATH']}")

    @asynccontextmanager
    async def life(*, jobs=FOR_GOOD, within_s=60.0):
        systemctl.write_text(f"#!/bin/sh\n{jobs}\n")
        systemctl.chmod(0o755)
        async with asyncio.TaskGroup() as tasks:
            reaper = OrphanReaper(tmp_path, lambda name, work: _void(contained(tasks, name, work)))
            handover_store = HandoverStore(store, reaper, store.found(), unit="zotd.service", within_s=within_s)
            reaper.sweep()
            await reaper.swept.wait()
            yield Life(reaper, handover_store)
            await handover_store.decide()
            handover_store.close()
            await reaper.close()

    return life


def _void(_):
    """Ignore the task: its task group owns it."""


@pytest.fixture
def left(life):
    """`await left(line, ...)`: pid of a process that a daemon has left, with these recorded lines."""

    async def left(*lines, script=ECHO, label=LABEL, ready=True):
        async with life(jobs=RESTARTING) as one:
            service, told, handover = one.begin(script, label)
            await told.pid()
            for line in lines:
                handover.record(line)
            if ready:
                handover.ready()
            service.let_go()
        return service.pid

    return left


async def test_a_survivor_is_adopted_with_its_pipes(life, left, store, tmp_path):
    pid = await left(b"one", b"two")
    async with life() as one:
        service, told, handover = one.begin()
        assert service.pid == pid
        assert handover.survivor.lines == [b"one", b"two"]
        service.write(b"hello\n")
        await told.until(lambda: b"got hello" in told.out)
        service.end_input()
        handover.end()  # the store has a copy of stdin as well
        await told.until(lambda: told.exits)
    assert told.code is None
    assert store.names == []
    assert entries(tmp_path) == []


async def test_an_adopted_process_can_be_handed_over_again(life, left):
    pid = await left(b"one")
    async with life(jobs=RESTARTING) as one:
        service, told, handover = one.begin()
        handover.record(b"two")
        service.let_go()
    async with life() as one:
        service, told, handover = one.begin()
        assert service.pid == pid
        assert handover.survivor.lines == [b"one", b"two"]
        service.kill()
        await told.until(lambda: told.exits)


async def test_only_a_ready_process_can_be_adopted(life, left, ended):
    pid = await left(b"one", ready=False)
    async with life() as one:
        await ended(pid)
        service, told, _ = one.begin()
        assert service.pid != pid
        service.kill()
        await told.exit()


async def test_a_survivor_with_another_digest_is_ended(life, left, ended):
    pid = await left()
    async with life() as one:
        service, told, _ = one.begin(label=Label(LABEL.place, LABEL.name, "changed"))
        assert service.pid != pid
        await ended(pid)
        service.kill()
        await told.exit()


@pytest.mark.parametrize("other", [Label("workspace /other", "counter", "as it is"), Label("daemon", "x", "as it is")])
async def test_a_survivor_of_another_scope_is_kept_for_that_scope(life, left, other):
    pid = await left()
    async with life() as one:
        service, told, _ = one.begin(label=other)
        assert service.pid != pid
        service.kill()
        await told.exit()
        one.handover_store.settle(other.place)
        assert is_alive(who(pid))
        assert one.begin()[0].pid == pid
        os.kill(pid, signal.SIGKILL)


async def test_a_survivor_that_its_scope_does_not_claim_is_ended(life, left, ended, store):
    pid = await left()
    async with life() as one:
        one.handover_store.settle(LABEL.place)
        await ended(pid)
        assert store.names == []


async def test_a_survivor_that_is_not_claimed_in_time_is_ended_with_its_descendants(life, left, ended, tmp_path):
    pid = await left(script='(trap "" TERM; setsid sleep 1000 &) ; trap "" TERM; ' + ECHO + "; sleep 1000")
    async with life(within_s=0):
        await ended(pid)
    assert entries(tmp_path) == []


async def test_the_newer_of_two_matching_survivors_is_adopted(life, ended):
    async with life(jobs=RESTARTING) as one:
        pids = []
        for _ in range(2):
            service, told, handover = one.begin(f"sleep 0.05; {ECHO}")  # to start at a different clock tick
            pids.append(await told.pid())
            handover.ready()
            service.let_go()
    async with life() as one:
        service, told, _ = one.begin()
        assert service.pid == pids[1]
        await ended(pids[0])
        service.kill()
        await told.until(lambda: told.exits)


async def test_a_torn_last_line_is_ignored(life, store):
    async with life(jobs=RESTARTING) as one:
        service, told, handover = one.begin()
        await told.pid()
        handover.record(b"one")
        handover.ready()
        os.write(_file(store), b'{"type":"regis')
        service.let_go()
    async with life(jobs=RESTARTING) as one:
        service, _, handover = one.begin()
        assert handover.survivor.lines == [b"one"]
        handover.record(b"two")
        service.let_go()
    async with life() as one:
        service, told, handover = one.begin()
        assert handover.survivor.lines == [b"one", b"two"]
        service.kill()
        await told.until(lambda: told.exits)


async def test_a_long_file_is_rewritten_with_the_valid_lines(life, store):
    async with life(jobs=RESTARTING) as one:
        service, told, handover = one.begin(condensed=lambda: [b"all that counts"])
        pid = await told.pid()
        handover.ready()
        for _ in range(2):
            handover.record(b"x" * (MIN_BYTES // 2))
        assert [name for name in store.names if name.endswith(("-1", "-2", "-3"))] == [f"ext-{_head(store)['mark']}-2"]
        service.let_go()
    async with life() as one:
        service, told, handover = one.begin()
        assert service.pid == pid
        assert handover.survivor.lines == [b"all that counts", b"x" * (MIN_BYTES // 2)]
        service.kill()
        await told.until(lambda: told.exits)


@pytest.mark.parametrize("lines", [[], [b"x" * MIN_BYTES]], ids=["", "written anew"])
async def test_a_possibly_incomplete_line_to_stdin_is_ended_first(life, left, lines):
    await left()
    async with life(jobs=RESTARTING) as one:
        service, _, handover = one.begin()
        service.write(b"half")
        handover.torn(True)
        for line in lines:
            handover.record(line)
        service.let_go()
    async with life() as one:
        service, told, _ = one.begin()
        service.write(b"whole\n")
        await told.until(lambda: b"got whole" in told.out)
        assert told.out == b"got half\ngot whole\n"
        service.kill()
        await told.until(lambda: told.exits)


async def test_a_complete_last_line_to_stdin_is_not_ended_again(life, left):
    await left()
    async with life() as one:
        service, told, _ = one.begin()
        service.write(b"x" * 200_000 + b"\n")
        await told.until(lambda: told.out.endswith(b"x\n"))
        service.write(b"whole\n")
        await told.until(lambda: b"got whole" in told.out)
        assert told.out.count(b"got") == 2
        service.kill()
        await told.until(lambda: told.exits)


async def test_the_group_of_an_adopted_process_is_killed_with_it(life, left, ended, lives):
    pid = await left(script="env -u ZOT_CHILD_TOKEN sleep 1000 & echo $!; wait")
    async with life() as one:
        service, told, _ = one.begin()
        assert service.pid == pid
        [below] = [one.identity.pid for one in census() if one.group == pid != one.identity.pid]
        os.kill(pid, signal.SIGKILL)
        await told.until(lambda: told.exits)
        await ended(below)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"world": "another boot"},
        {"mark": "0" * 16},
        {"started": 1},
        {"pid": 1},
        {"pid": 1 << 40},
        {"pipes": [1, 2, 3]},
        {"label": 7},
    ],
)
async def test_a_process_with_a_mismatched_file_is_ended(life, left, store, ended, change):
    pid = await left()
    head = {**_head(store), **change}
    file = _file(store)
    os.ftruncate(file, 0)
    os.pwrite(file, b" " + json.dumps(head).encode() + b"\n" + READY + b"\n", 0)
    async with life():
        await ended(pid)
        assert store.names == []


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"\xff\n", b" {}\nready\n", b'!{"version":1}\nready\n'])
async def test_an_invalid_file_is_removed_from_the_store(life, store, content):
    file = os.memfd_create("forged")
    os.write(file, content)
    forged = ("0123456789abcdef-1", "0123456789abcdef", "", "nothing", "0123456789abcdef-x", "0123456789abcde0-01")
    for name in forged:
        store.put(f"ext-{name}", [file])
    store.put("zotd.socket", [file])
    os.close(file)
    async with life():
        assert store.names == ["zotd.socket"]


async def test_an_oversized_file_is_removed_from_the_store(life, left, store, ended):
    pid = await left()
    os.ftruncate(_file(store), MAX_BYTES + 1)
    async with life():
        await ended(pid)
        assert store.names == []


async def test_a_descriptor_that_is_no_file_is_removed_from_the_store(life, store):
    ends = os.pipe()
    store.put("ext-0123456789abcdef-1", ends)
    for fd in ends:
        os.close(fd)
    async with life():
        assert store.names == []


def _file(store):
    """Return the descriptor of a memfd."""
    [file] = [fd for name, fd in store._held if name.count("-") == 2]
    return file


def _head(store):
    return json.loads(os.pread(_file(store), 4096, 0).split(b"\n")[0])
