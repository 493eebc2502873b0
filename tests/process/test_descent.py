"""Who descends from us, and for whom; also while processes end, and others get their pids."""

import os
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    """`await started(script)`: a shell that runs for "us"; and the pid that it prints first."""
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


async def test_a_child_and_what_it_starts_run_for_the_same(kernel, started):
    child, below = await started("sh -c 'echo $$; sleep 1000; true'; true")
    assert below != child.pid
    assert descent.descent(child.pid, kernel) == descent.descent(below, kernel) == Descent(("us",))


async def test_a_session_of_its_own_changes_nothing(kernel, started):
    _, below = await started("setsid sh -c 'echo $$; exec sleep 1000'; true")
    assert descent.descent(below, kernel) == Descent(("us",))


async def test_an_orphan_is_ours_and_nobodys(kernel, started, lives):
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
    """The pid that a shell prints which leads a session, and is no child of ours."""
    with subprocess.Popen(["sh", "-c", AWAY % script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        return int(parent.stdout.readline())


def test_what_was_adopted_runs_for_somebody_and_so_does_its_session(kernel, lives):
    pid = stranger('sh -c "echo \\$PPID; exec sleep 1000"; true')
    assert lives(pid)
    [below] = [one.identity.pid for one in census() if one.group == pid and one.identity.pid != pid]
    assert descent.descent(pid, kernel) is None
    descent.adopted(Identity(pid, kernel.status(pid).started), ("us",))
    assert descent.descent(pid, kernel) == descent.descent(below, kernel) == Descent(("us",))
    descent.forget(pid)
    assert descent.descent(pid, kernel) is None


def test_who_has_the_pid_of_one_that_was_adopted_is_a_stranger(lives):
    pid = stranger("echo $$; exec sleep 1000")
    assert lives(pid)
    descent.adopted(replace(who(pid), started=who(pid).started - 1), ("us",))
    assert descent.descent(pid) is None
    descent.forget(pid)


def test_we_our_parents_and_what_is_elsewhere_are_strangers(kernel):
    for pid in (ME, os.getppid(), 1, 0):
        assert descent.descent(pid, kernel) is None


def test_what_stays_in_our_session_is_a_stranger(kernel):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        assert descent.descent(other.pid, kernel) is None


def test_who_has_ended_is_nobodys(kernel):
    with subprocess.Popen(["true"], start_new_session=True) as other:
        pass
    assert descent.descent(other.pid, kernel) == NOBODYS


class Table:
    """A kernel with these processes, to which something may happen before each look."""

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
"""The kernel gives out smaller pids only: from here on none is ours."""


def test_another_users_parent_that_is_hidden_makes_a_stranger():
    assert descent.descent(NOBODY, Table({**US, NOBODY: process(20, NOBODY + 1)})) is None


def test_who_came_before_us_is_a_stranger_whatever_is_above():
    assert descent.descent(NOBODY, Table({**US, NOBODY: process(9, ME)})) is None


def test_a_line_that_does_not_end_is_nobodys():
    line = {pid: process(pid, pid - 1) for pid in range(NOBODY, NOBODY + 2 * MAX_STEPS)}
    assert descent.descent(max(line), Table({**US, **line})) == NOBODYS


STRANGER = process(1_000, 1, 3)


@settings(max_examples=1500)
@given(
    generations=st.integers(1, 4),
    fates=st.lists(st.none() | st.tuples(st.integers(0, 3), st.booleans()), min_size=4, max_size=10),
)
def test_a_descendant_is_never_taken_for_a_stranger_whoever_ends_meanwhile(generations, fates):
    """Before each look a process of the line may end, and a stranger may get its pid, but for that of the last."""
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
                processes[pid] = replace(one, parent=ME)  # we adopt orphans
        if fate[1] and gone != line[-1]:
            processes[gone] = STRANGER

    below = {pid: process(20 + number, [ME, *line][number]) for number, pid in enumerate(line)}
    assert descent.descent(line[-1], Table({**US, **below}, happens)) is not None
