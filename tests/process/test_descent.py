"""Recognising descendants and their owners, even while processes end and pids are reused."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.process.conftest import AWAY, ENV, Told, who
from zotd.process import descent, orphans_adopted, spawn
from zotd.process.census import KERNEL, Identity, Portable, ProcessStatus, census
from zotd.process.descent import MAX_STEPS, Descent

ME = os.getpid()

NOBODYS = Descent(())


@pytest.fixture(params=[KERNEL, Portable()], ids=["this system", "portable"])
def kernel(request):
    return request.param


@pytest.fixture
async def started():
    """`await started(script)`: a child shell with the owner "us"; and the pid that it prints first."""
    children = []

    async def started(script):
        told = Told()
        child = spawn(["sh", "-c", script], cwd="/", env=ENV, on_output=told.output)
        children.append(child)
        descent.belongs(child.pid, ("us",))
        return child, await told.pid()

    yield started
    for child in children:
        await child.stop()


async def test_a_child_and_its_descendants_have_the_same_owners(kernel, started):
    child, below = await started("sh -c 'echo $$; sleep 1000; true'; true")
    assert below != child.pid
    assert descent.descent(child.pid, kernel) == descent.descent(below, kernel) == Descent(("us",))


async def test_a_descendant_in_its_own_session_keeps_its_owners(kernel, started):
    _, below = await started("setsid sh -c 'echo $$; exec sleep 1000'; true")
    assert descent.descent(below, kernel) == Descent(("us",))


async def test_an_orphan_is_a_descendant_without_owners(kernel, started, lives):
    with orphans_adopted():
        child, below = await started(AWAY % "echo $$; exec sleep 1000 >&2")
        await child.wait()
        assert lives(below)
        assert descent.descent(below, kernel) == NOBODYS


async def test_a_child_that_was_reaped_is_forgotten(started):
    child, _ = await started("echo 0")
    await child.wait()
    again = {ME: ProcessStatus(1, 1, ME, ME, True), child.pid: ProcessStatus(2, ME, 5, 5, True)}
    assert descent.descent(child.pid, Table(again)) == NOBODYS


def stranger(script):
    """A pid, printed by a shell, of a session leader that is not our child."""
    with subprocess.Popen(["sh", "-c", AWAY % script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        return int(parent.stdout.readline())


def test_an_adopted_process_and_its_session_have_owners(kernel, lives):
    pid = stranger('sh -c "echo \\$PPID; exec sleep 1000"; true')
    assert lives(pid)
    [below] = [one.identity.pid for one in census() if one.group == pid and one.identity.pid != pid]
    assert descent.descent(pid, kernel) is None
    descent.adopted(Identity(pid, kernel.status(pid).started), ("us",))
    assert descent.descent(pid, kernel) == descent.descent(below, kernel) == Descent(("us",))
    descent.forget(pid)
    assert descent.descent(pid, kernel) is None


def test_a_process_with_the_reused_pid_of_an_adopted_one_is_no_descendant(lives):
    pid = stranger("echo $$; exec sleep 1000")
    assert lives(pid)
    descent.adopted(replace(who(pid), started=who(pid).started - 1), ("us",))
    assert descent.descent(pid) is None
    descent.forget(pid)


def test_this_process_and_its_parents_are_no_descendants(kernel):
    for pid in (ME, os.getppid(), 1, 0):
        assert descent.descent(pid, kernel) is None


def test_a_child_in_our_own_session_is_no_descendant(kernel):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        assert descent.descent(other.pid, kernel) is None


def test_a_process_that_has_ended_is_a_descendant_without_owners(kernel):
    with subprocess.Popen(["true"], start_new_session=True) as other:
        pass
    assert descent.descent(other.pid, kernel) == NOBODYS


class Table:
    """A kernel with these processes; something may happen before each lookup."""

    def __init__(self, processes, happens=lambda _: None):
        self.processes = processes
        self._happens = happens

    def pids(self):
        return list(self.processes)

    def mark(self, pid):
        raise AssertionError(pid)

    def status(self, pid):
        self._happens(self.processes)
        return self.processes.get(pid)


def process(started, parent, session=7):
    return ProcessStatus(started, parent, group=session, session=session, is_alive=True)


US = {1: process(0, 0, 1), ME: process(10, 1, ME)}

NOBODY = 1 << 22
"""Larger than any pid that the kernel assigns, so no process has it."""


def test_a_process_with_a_hidden_parent_is_no_descendant():
    assert descent.descent(NOBODY, Table({**US, NOBODY: process(20, NOBODY + 1)})) is None


def test_a_process_older_than_this_one_is_no_descendant():
    assert descent.descent(NOBODY, Table({**US, NOBODY: process(9, ME)})) is None


def test_an_endless_parent_chain_is_a_descendant_without_owners():
    line = {pid: process(pid, pid - 1) for pid in range(NOBODY, NOBODY + 2 * MAX_STEPS)}
    assert descent.descent(max(line), Table({**US, **line})) == NOBODYS


STRANGER = process(1_000, 1, 3)


@settings(max_examples=1500)
@given(
    generations=st.integers(1, 4),
    fates=st.lists(st.none() | st.tuples(st.integers(0, 3), st.booleans()), min_size=4, max_size=10),
)
def test_a_descendant_is_recognised_even_if_its_parents_end_meanwhile(generations, fates):
    """Before each lookup a process of the chain may end and its pid be reused by an unrelated one, except for the last."""
    line = [NOBODY + number for number in range(generations)]
    waiting = iter(fates)

    def happens(processes):
        fate = next(waiting, None)
        if fate is None or fate[0] >= generations or processes.get(line[fate[0]]) in {None, STRANGER}:
            return
        gone = line[fate[0]]
        del processes[gone]
        for pid, one in list(processes.items()):
            if one.parent == gone:
                processes[pid] = replace(one, parent=ME)  # we are the subreaper
        if fate[1] and gone != line[-1]:
            processes[gone] = STRANGER

    below = {pid: process(20 + number, [ME, *line][number]) for number, pid in enumerate(line)}
    assert descent.descent(line[-1], Table({**US, **below}, happens)) is not None
