"""A command under a supervisor, whatever the daemon that started it does, and whatever is found of it later."""

import asyncio
import os
import pathlib
import signal

import pytest
from msgspec.structs import replace

from zotd.process.census import Identity
from zotd.process.supervised_command import SupervisedOutput, adopt, start_supervised, state_path
from zotd.process.supervisor_state import (
    ABANDONED,
    ENDED,
    RUNNING,
    SupervisorOrder,
    SupervisorState,
    create_state,
    read_state,
    replace_state,
)

PATIENCE_S = 60


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out" / "j1.txt"


def order(output, command):
    return SupervisorOrder(
        home=str(output.parent.parent),
        what="a job",
        argv=["/bin/sh", "-c", command],
        cwd="/",
        env={"PATH": os.environ["PATH"]},
        output=str(output),
        limit_bytes=1000,
        state=str(state_path(output)),
    )


async def followed(command):
    async with asyncio.timeout(PATIENCE_S):
        await command.follow()
    return command.state


async def test_its_exit_code_and_its_output_are_on_disk(output):
    command = start_supervised(order(output, "echo one; exit 3"), ("s_1",))
    state = await followed(command)
    assert (state.state, state.exit, state.output_bytes) == (ENDED, 3, 4)
    assert not command.is_lost
    assert command.output.read(0, 100).data == b"one\n"


async def test_one_that_was_given_up_before_it_started_never_starts(output):
    given_up = adopt(output, ())
    assert given_up.state.state == ABANDONED
    late = start_supervised(order(output, f"touch {output.parent}/made"), ())
    await followed(late)
    assert late.is_lost
    assert not (output.parent / "made").exists()


async def started(output):
    """A command that runs for ten minutes."""
    ready = output.parent.parent / "ready"
    os.mkfifo(ready)
    command = start_supervised(order(output, f"echo x > {ready}; exec sleep 600"), ("s_1",))
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.to_thread(ready.read_text)
    return command


async def test_it_is_adopted_by_what_looks_for_it_and_ends_on_demand(output):
    first = await started(output)
    second = adopt(output, ("s_1",))
    async with asyncio.TaskGroup() as group:
        ends = [group.create_task(followed(one)) for one in (first, second)]
        await second.stop()
    assert [end.result().exit for end in ends] == [128 + signal.SIGTERM] * 2
    assert not second.is_lost


async def test_leaving_it_returns_at_once_and_it_goes_on(output):
    command = await started(output)
    command.leave()
    await followed(command)
    assert command.is_left
    assert not command.is_lost
    other = adopt(output, ())
    assert not other.has_ended
    async with asyncio.TaskGroup() as group:
        group.create_task(followed(other))
        await other.stop()


@pytest.mark.parametrize(
    "changes",
    [
        {"supervisor": Identity(os.getpid(), 1)},  # another process has its number now
        {"world": "another boot"},
        {"supervisor": None},
    ],
)
async def test_a_supervisor_that_is_not_the_recorded_one_counts_as_gone(output, changes):
    me = Identity(os.getpid(), 1)
    state = SupervisorState(state=RUNNING, world="another boot", supervisor=me, pid=os.getpid())
    assert create_state(state_path(output), state)
    replace_state(state_path(output), replace(state, **changes))
    found = adopt(output, ())
    assert found.has_ended
    await followed(found)
    assert found.is_lost
    await found.stop()  # must not signal this process


@pytest.mark.parametrize("content", [b"", b"{", b'{"state": 7}', b"[]", b" " * 100_000 + b'{"state": "ended"}'])
async def test_a_state_that_cannot_be_read_counts_as_unknown(output, content):
    state_path(output).parent.mkdir(mode=0o700)
    state_path(output).write_bytes(content)
    found = adopt(output, ())
    await followed(found)
    assert found.is_lost


@pytest.mark.parametrize("made", [os.mkfifo, os.mkdir, lambda path: pathlib.Path(path).symlink_to("/etc/passwd")])
def test_what_a_command_puts_in_the_place_of_its_output_is_not_read(output, made):
    output.parent.mkdir(mode=0o700)
    made(output)
    found = SupervisedOutput(output, state_path(output))
    assert found.read(0, 100).data == b""
    assert found.total >= 0


def test_a_link_or_a_pipe_in_the_place_of_the_state_is_not_read(output, tmp_path):
    output.parent.mkdir(mode=0o700)
    state_path(output).symlink_to(tmp_path / "elsewhere")
    assert read_state(state_path(output)) is None
    state_path(output).unlink()
    os.mkfifo(state_path(output))
    assert read_state(state_path(output)) is None
