import asyncio
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.process.conftest import entries
from zotd.process import ChildLedger, spawn
from zotd.process.census import Identity, identify
from zotd.process.ledger import clock

ENV = {"PATH": os.environ["PATH"]}


class Collected:
    """Collects a child's output, and can wait for a part of it."""

    def __init__(self):
        self.data = b""
        self._changed = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self._changed.set()

    async def until(self, part: bytes) -> None:
        async with asyncio.timeout(60):
            while part not in self.data:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def output():
    return Collected()


@pytest.fixture
def shell(tmp_path, output):
    """Starts a shell command in `tmp_path`."""

    def start(command: str, **options):
        return spawn(["sh", "-c", command], cwd=str(tmp_path), env=ENV, on_output=output, **options)

    return start


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def has_children() -> bool:
    """Return the number of child processes, including zombies."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


async def test_stdout_and_stderr_are_delivered_in_order_before_the_exit_code(shell, output):
    assert await shell("echo one; echo two >&2; echo three; exit 3").wait() == 3
    assert output.data == b"one\ntwo\nthree\n"


async def test_stderr_can_be_separated(shell, output):
    assert await shell("echo one; echo two >&2", stderr=subprocess.DEVNULL).wait() == 0
    assert output.data == b"one\n"


async def test_an_exit_by_a_signal_has_a_negative_code(shell):
    assert await shell("kill -9 $$").wait() == -signal.SIGKILL


async def test_every_waiting_task_gets_the_exit_code(shell):
    child = shell("exit 4")
    assert [await child.wait(), await child.wait(), child.returncode] == [4, 4, 4]


async def test_output_larger_than_a_pipe_is_complete(shell, output):
    await shell("head -c 3000000 /dev/zero").wait()
    assert len(output.data) == 3_000_000


async def test_a_child_gets_only_the_given_environment_and_no_input(tmp_path, output):
    child = spawn(["sh", "-c", "cat; env; pwd"], cwd=str(tmp_path), env={**ENV, "ONLY": "this"}, on_output=output)
    await child.wait()
    assert b"ONLY=this" in output.data
    assert b"HOME=" not in output.data
    assert output.data.endswith(f"{tmp_path}\n".encode())


async def test_a_command_that_cannot_start_raises_and_leaks_no_descriptor(tmp_path, output):
    before = open_files()
    with pytest.raises(FileNotFoundError):
        spawn(["no-such-program"], cwd=str(tmp_path), env=ENV, on_output=output)
    assert open_files() == before


async def test_children_leak_no_descriptors_threads_or_zombies(shell):
    await shell("true").wait()
    before = open_files(), threading.active_count()
    children = [shell("true") for _ in range(20)]
    for child in children:
        await child.wait()
    assert (open_files(), threading.active_count()) == before
    assert not has_children()


async def test_an_exit_is_reported_while_a_grandchild_holds_the_pipe(shell, output, ended):
    child = shell("echo early; sleep 100 & echo $!")
    async with asyncio.timeout(60):
        assert await child.wait() == 0
    name, pid = output.data.split()
    assert name == b"early"
    os.kill(int(pid), signal.SIGKILL)  # raises if it is not running
    await ended(int(pid))


async def test_a_background_grandchild_can_continue_to_write(shell, tmp_path, output):
    """With the pipe closed it would get SIGPIPE; with the pipe full it would block."""
    for name in ("go", "done"):
        os.mkfifo(tmp_path / name)
    await shell(
        "{ read line && head -c 200000 /dev/zero && echo still here > done; } < go & true", stdin=subprocess.DEVNULL
    ).wait()

    def talk():
        (tmp_path / "go").write_text("now\n")
        return (tmp_path / "done").read_text()

    async with asyncio.timeout(60):
        assert await asyncio.to_thread(talk) == "still here\n"
    assert output.data == b""


async def test_output_of_a_paused_child_is_delivered_at_its_exit(shell, output):
    child = shell("echo one")
    child.pause_output()
    assert await child.wait() == 0
    assert output.data == b"one\n"


async def test_a_paused_child_blocks_until_it_is_resumed(shell, output):
    child = shell("head -c 3000000 /dev/zero; echo done")
    child.pause_output()
    child.resume_output()
    await output.until(b"done")
    await child.wait()
    assert len(output.data) == 3_000_005


async def test_stop_sends_sigterm_first(shell, output):
    child = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")
    await output.until(b"ready\n")
    await child.stop(grace_s=5)
    assert child.returncode == 0
    assert output.data.endswith(b"bye\n")  # the shell may have printed before that its child was terminated


async def test_stop_kills_a_group_that_ignores_sigterm(shell, output, ended):
    child = shell("trap '' TERM; sleep 100 & echo $!; echo ready; sleep 100; sleep 100")
    await output.until(b"ready\n")
    await child.stop(grace_s=0.05)
    assert child.returncode == -signal.SIGKILL
    await ended(int(output.data.split()[0]))


async def test_stop_kills_a_grandchild_that_outlives_its_parent(shell, output, ended):
    """The child handles SIGTERM, its own child ignores it; the pid of the group must not be reused meanwhile."""
    child = shell("(trap '' TERM; sh -c 'echo $PPID'; echo ready; sleep 100; sleep 100) & wait")
    await output.until(b"ready\n")
    pid = int(output.data.split()[0])
    await child.stop(grace_s=0.05)
    assert child.returncode == -signal.SIGTERM
    await ended(pid)


async def test_stop_after_the_exit_does_not_affect_background_processes(shell, output, ended):
    child = shell("sleep 100 & echo $!")
    await child.wait()
    await child.stop()
    child.signal_group(signal.SIGKILL)
    os.kill(int(output.data), signal.SIGKILL)
    await ended(int(output.data))


async def test_cancelling_the_owner_ends_the_group(shell, output, ended):
    async def own() -> None:
        async with shell("sleep 100 & echo $!; echo ready; wait") as child:
            await child.wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(own())
        await output.until(b"ready\n")
        task.cancel()
    await ended(int(output.data.split()[0]))


async def test_a_second_cancellation_still_ends_the_group(shell, output, ended):
    child = shell("trap '' TERM; sleep 100 & echo $!; echo ready; wait; wait")
    await output.until(b"ready\n")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(child.stop(grace_s=100))
        await asyncio.sleep(0)  # let `stop` begin
        task.cancel()
    await ended(int(output.data.split()[0]))
    assert await child.wait() == -signal.SIGKILL


async def test_a_child_is_in_the_ledger_while_it_runs(tmp_path, shell, output):
    ledger = ChildLedger(tmp_path / "run" / "children")
    child = shell("echo ready; while :; do sleep 0.01; done", ledger=ledger)
    await output.until(b"ready")
    (entry,) = entries(tmp_path)
    assert f'"pid":{child.pid},' in entry.read_text()
    await child.stop()
    assert entries(tmp_path) == []


async def test_the_ledger_identifies_each_child_as_the_kernel_does(tmp_path, shell, output):
    ledger = ChildLedger(tmp_path / "run" / "children")
    children = [shell("while :; do sleep 0.01; done", ledger=ledger) for _ in range(30)]  # some across a clock tick
    notes = [json.loads(entry.read_text()) for entry in entries(tmp_path)]
    assert {note["pid"] for note in notes} == {child.pid for child in children}
    assert [Identity(note["pid"], note["started"]) for note in notes] == [identify(note["pid"]) for note in notes]
    for child in children:
        await child.stop()


def test_a_ledger_whose_clock_is_not_the_kernels_asks_the_kernel(tmp_path):
    ledger = ChildLedger(tmp_path / "run" / "children")
    for _ in range(3):  # from the second time on the ledger knows about its clock
        ledger.started(os.getpid(), "not started now", clock())
    me = identify(os.getpid())
    assert me is not None
    assert {json.loads(one.read_text())["started"] for one in entries(tmp_path)} == {me.started}


async def test_a_command_that_cannot_start_is_not_in_the_ledger(tmp_path, output):
    ledger = ChildLedger(tmp_path / "run" / "children")
    with pytest.raises(FileNotFoundError):
        spawn(["no-such-program"], cwd="/", env=ENV, on_output=output, ledger=ledger)
    assert entries(tmp_path) == []


async def test_a_program_may_have_any_name(tmp_path, output):
    program = tmp_path / os.fsdecode(b"caf\xe9")
    program.symlink_to("/bin/true")
    ledger = ChildLedger(tmp_path / "run" / "children")
    assert await spawn([str(program)], cwd="/", env=ENV, on_output=output, ledger=ledger).wait() == 0
