"""Identifying processes; the results of /proc and psutil agree."""

import os
import subprocess

import pytest

from zotd.process.census import (
    KERNEL,
    MARK,
    Identity,
    Portable,
    ProcessInfo,
    ProcessStatus,
    census,
    identify,
    is_alive,
    world,
)


@pytest.fixture(params=[KERNEL, Portable()], ids=["this system", "portable"])
def kernel(request):
    return request.param


@pytest.fixture
def child():
    """A process with a mark, in a group of its own, with a name that is difficult to parse."""
    process = subprocess.Popen(
        ["sh", "-c", "printf ') Z 1 (' > /proc/$$/comm; echo ready; read line"],
        env={"PATH": os.environ["PATH"], MARK: "0123456789abcdef", "OTHER": "x"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.communicate()


def test_a_process_is_found_with_its_group_and_mark(kernel, child):
    (found,) = [process for process in census(kernel) if process.identity.pid == child.pid]
    assert (found.group, found.mark) == (child.pid, "0123456789abcdef")
    assert found.identity == identify(child.pid, kernel)


def test_the_census_excludes_this_process(kernel):
    assert os.getpid() not in [process.identity.pid for process in census(kernel)]


def test_a_zombie_is_not_alive(kernel, child):
    identity = identify(child.pid, kernel)
    assert identity is not None
    assert is_alive(identity, kernel)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert identify(child.pid, kernel) == identity  # a zombie
    assert not is_alive(identity, kernel)
    assert child.pid not in [process.identity.pid for process in census(kernel)]
    child.communicate()
    assert identify(child.pid, kernel) is None
    assert kernel.mark(child.pid) == ""


def test_a_process_with_a_reused_pid_has_another_identity(kernel):
    me = identify(os.getpid(), kernel)
    assert me is not None
    assert is_alive(me, kernel)
    assert not is_alive(Identity(me.pid, me.started - 1), kernel)


def test_a_process_without_a_mark_has_none(kernel):
    with subprocess.Popen(["env", "-i", "cat"], stdin=subprocess.PIPE) as bare:
        found = {process.identity.pid: process.mark for process in census(kernel)}
        assert found[bare.pid] == ""
        assert found[os.getppid()] == ""


class MidExec:
    """A kernel with one process, whose environment is empty at first, as during `exec`."""

    def __init__(self):
        self._environments = [None, "0123456789abcdef"]

    def pids(self):
        return [4711]

    def status(self, pid):
        assert pid == 4711
        return ProcessStatus(started=1, parent=1, group=4711, session=4711, is_alive=True)

    def mark(self, pid):
        assert pid == 4711
        return self._environments.pop(0)


def test_an_environment_that_is_empty_during_exec_is_read_again():
    assert census(MidExec()) == [ProcessInfo(Identity(4711, 1), 4711, "0123456789abcdef")]


def test_the_world_name_contains_no_slash():
    assert "/" not in world()
    assert world() == world()
