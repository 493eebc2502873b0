"""A command begins in a process that somebody else has started, and only if we say so."""

import asyncio
import os
import signal
import socket
import subprocess

import pytest

from zotd.process import start_gate
from zotd.process.census import is_alive
from zotd.process.descent import descent
from zotd.process.ladder import signal_all
from zotd.process.ledger import ChildLedger
from zotd.process.start_gate import StartGate

SHELL = ["/bin/sh", "-c"]

WAIT_S = 30.0


@pytest.fixture
def gate(tmp_path):
    gate = StartGate(str(tmp_path / "g"))
    yield gate
    gate.close()


@pytest.fixture
async def started():
    """`started(gate)`: the process that an editor would start; what it writes is read from its `stdout`."""
    processes = []

    async def started(gate):
        argv = gate.argv("a command")
        process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        processes.append(process)
        return process

    yield started
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.wait()


def let_in(gate, command, ledger=None):
    argv = [*SHELL, command]
    return gate.let_in(argv, cwd="/", env={"A": "b", "PATH": os.defpath}, owners=("s_1",), ledger=ledger)


async def test_the_process_becomes_the_command_with_nothing_but_its_environment(gate, started, monkeypatch):
    monkeypatch.setenv("OF_EDITOR", "1")
    process = await started(gate)
    begun = await let_in(gate, 'pwd; echo "$A|$OF_EDITOR"; exit 3')
    assert await process.communicate() == (b"/\nb|\n", None)
    assert process.returncode == 3
    await begun.stop()


async def test_a_signal_that_ends_the_command_is_told_as_shells_do(gate, started):
    process = await started(gate)
    await let_in(gate, "kill -TERM $$")
    assert await process.wait() == 128 + 15


async def test_a_command_that_does_not_exist_is_told(gate, started):
    process = await started(gate)
    await gate.let_in(["/no/such"], cwd="/", env={}, owners=(), ledger=None)
    said, _ = await process.communicate()
    assert (said, process.returncode) == (b"zot: /no/such: No such file or directory\n", 127)


async def test_the_command_is_a_descendant_in_the_ledger_until_it_is_stopped(gate, started, tmp_path):
    ledger = ChildLedger(tmp_path / "ledger")
    process = await started(gate)
    async with await let_in(gate, "echo on; exec sleep 1000", ledger) as begun:
        assert await process.stdout.readline() == b"on\n"
        child = begun.process
        found = descent(child.pid)
        assert found is not None
        assert [*found.owners] == ["s_1"]
        assert len([*(tmp_path / "ledger").glob("*/*")]) == 1
    await signal_all([child], 0, WAIT_S)
    assert not is_alive(child)
    assert [*(tmp_path / "ledger").glob("*/*")] == []


async def test_a_process_that_asks_at_a_closed_gate_runs_nothing(gate, started):
    gate.close()
    process = await started(gate)
    said, _ = await process.communicate()
    assert (said, process.returncode) == (b"zot has not run this here; see the session\n", 126)


async def test_a_process_that_was_not_let_in_runs_nothing_when_the_gate_is_closed(gate, started):
    waiting = await started(gate)
    await gate._asked()
    gate.close()
    assert await waiting.wait() == 126


async def test_nothing_runs_when_the_wait_is_cancelled(gate, started):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await let_in(gate, "echo ran")
    process = await started(gate)
    await gate._asked()
    gate.close()
    said, _ = await process.communicate()
    assert b"ran\n" not in said


async def test_a_process_that_takes_nothing_has_not_begun_and_is_ended(gate, monkeypatch):
    monkeypatch.setattr(start_gate, "SEND_S", 0.05)
    taking_nothing = "import os, socket, sys, signal; os.setsid(); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); signal.pause()"
    process = await asyncio.create_subprocess_exec("python3", "-c", taking_nothing, gate.path)
    with pytest.raises(OSError, match="does not take what it is to run"):
        await gate.let_in(["/bin/true"], cwd="/", env={"LONG": "x" * (1 << 23)}, owners=(), ledger=None)
    assert await process.wait() == -9


async def test_a_process_that_does_not_lead_a_session_is_refused(gate):
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(gate.path)
        with pytest.raises(OSError, match="not one of this user on this machine"):
            await let_in(gate, "echo ran")
        assert ours.recv(1) == b""


async def test_the_command_has_the_signals_of_a_new_process(gate, started):
    process = await started(gate)
    await let_in(gate, "yes | head -1; kill -PIPE $$")
    assert await process.communicate() == (b"y\n", None)
    assert process.returncode == 128 + signal.SIGPIPE


async def test_an_interrupt_in_the_terminal_reaches_the_command(gate, started):
    process = await started(gate)
    await let_in(gate, "trap 'echo stopped; exit 3' INT; echo on; while :; do sleep 0.01; done")
    assert await process.stdout.readline() == b"on\n"
    process.send_signal(signal.SIGINT)
    assert await process.communicate() == (b"stopped\n", None)
    assert process.returncode == 3
