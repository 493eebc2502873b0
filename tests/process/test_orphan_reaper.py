"""Processes do not outlive their owner for long, neither those of an extension nor those of a killed host."""

import asyncio
import errno
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from tests.process.conftest import AWAY, ENV, STUBBORN, Told, claimed, entries, opened, sweep, who
from zotd.process import start_service
from zotd.process.census import MARK, world
from zotd.process.ledger import FORGET_S

# --- strays of a service --------------------------------------------------------------------------------------


async def test_a_process_that_left_the_group_ends_with_its_service(tmp_path, told, lives, ended):
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, f"{STUBBORN}; read line", told)
        pid = await told.pid()
        assert lives(pid)
        service.end_input()
        await told.exit()
        await ended(pid)
    assert entries(tmp_path) == []


async def test_a_stray_gets_sigterm_before_sigkill(tmp_path, told, lives, ended):
    stray = (
        AWAY % f'exec 2>/dev/null; trap "echo bye > {tmp_path}/bye; exit" TERM; echo $$; while :; do sleep 0.01; done'
    )
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, f"{stray}; read line", told)
        pid = await told.pid()
        assert lives(pid)
        service.end_input()
        await ended(pid)
    assert (tmp_path / "bye").read_text() == "bye\n"


async def test_strays_of_a_killed_service_are_killed_at_once(tmp_path, told, lives, ended):
    stray = (
        AWAY % f'exec 2>/dev/null; trap "echo bye > {tmp_path}/bye; exit" TERM; echo $$; while :; do sleep 0.01; done'
    )
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, f"{stray}; read line", told)
        pid = await told.pid()
        assert lives(pid)
        service.kill()
        await ended(pid)
    assert not (tmp_path / "bye").exists()


async def test_services_that_end_together_end_only_their_own_strays(tmp_path, lives, ended):
    listeners = [Told() for _ in range(6)]
    async with opened(tmp_path) as reaper:
        services = [claimed(reaper, f"{STUBBORN}; read line", told) for told in listeners]
        pids = [await told.pid() for told in listeners]
        assert all(map(lives, pids))
        for service in services[1:]:
            service.end_input()
        for pid in pids[1:]:
            await ended(pid)
        assert lives(pids[0])
        services[0].end_input()
        await ended(pids[0])


async def test_a_helper_that_drops_the_mark_is_not_ended(tmp_path, told, lives):
    helper = STUBBORN.replace("setsid", f"env -u {MARK} setsid")
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, f"{helper}; read line", told)
        pid = await told.pid()
        service.end_input()
        await told.exit()
    assert lives(pid)


async def test_strays_of_a_late_service_are_left_to_the_next_host(tmp_path, told):
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, "read line", told)
        await reaper.close()
        service.end_input()
        assert await told.exit() == 1  # `read` exits with 1 at the end of its input
    assert len(entries(tmp_path)) == 1


async def test_services_run_even_if_the_ledger_cannot_be_written(tmp_path, told, lives, ended, caplog):
    (tmp_path / "run").write_text("a file")
    async with opened(tmp_path) as reaper:
        reaper.ledger.open()
        service = claimed(reaper, f"{STUBBORN}; read line", told)
        pid = await told.pid()
        assert lives(pid)
        service.end_input()
        await ended(pid)
    assert [record.levelname for record in caplog.records].count("WARNING") == 1
    assert "cannot be recorded" in caplog.text


# --- children of a killed host --------------------------------------------------------------------------------


async def test_the_next_host_ends_all_processes_of_a_killed_one(tmp_path, host, lives, ended):
    """Ten processes that ignore signals, fork twice and leave the group."""
    killed = host("service", *[f"trap '' TERM; {STUBBORN}; sleep 1000; sleep 1000"] * 10)
    pids = killed.pids(10)
    killed.kill()
    assert all(map(lives, pids))
    await sweep(tmp_path)  # takes at most 5 s
    for pid in pids:
        await ended(pid)
    assert list((tmp_path / "run" / "children").iterdir()) == []


async def test_the_parent_death_signal_ends_a_service_with_its_host(host, lives, ended):
    stubborn = host("service", "trap '' TERM; echo $$; sleep 1000; sleep 1000")
    (pid,) = stubborn.pids(1)
    assert lives(pid)
    stubborn.kill()
    await ended(pid)


async def test_without_setpriv_the_next_host_ends_the_group(tmp_path, host, lives, ended):
    empty = {"PATH": str(tmp_path)}  # without setpriv
    (tmp_path / "sh").symlink_to("/bin/sh")
    killed = host("service", "trap '' TERM; PATH=/usr/bin:/bin; sleep 1000 & echo $$; echo $!; wait; wait", env=empty)
    pids = killed.pids(2)
    killed.kill()
    assert all(map(lives, pids))
    await sweep(tmp_path)
    for pid in pids:
        await ended(pid)


async def test_a_running_command_is_ended_but_no_background_process_of_an_earlier_one(tmp_path, host, lives, ended):
    killed = host("tool", "sleep 1000 & echo $!; sleep 1000; sleep 1000", "sleep 1000 >/dev/null & echo left; echo $!")
    said = killed.words(4)
    assert "exit 0" in said
    left = int(said[said.index("left") + 1])
    (running,) = {int(word) for word in said if word.isdigit()} - {left}
    killed.kill()
    assert lives(running)
    assert lives(left)
    await sweep(tmp_path)
    await ended(running)
    assert lives(left)
    assert entries(tmp_path) == []


async def test_children_of_a_running_host_are_not_touched(tmp_path, host, lives):
    alive = host("service", f"{STUBBORN}; sleep 1000")
    (pid,) = alive.pids(1)
    await sweep(tmp_path)
    assert lives(pid)
    assert len(entries(tmp_path)) == 1
    alive.kill()
    await sweep(tmp_path)
    assert not lives(pid)


async def test_children_of_another_home_are_not_touched(tmp_path, host, lives):
    killed = host("service", f"{STUBBORN}; sleep 1000", home=tmp_path / "one")
    (pid,) = killed.pids(1)
    killed.kill()
    await sweep(tmp_path / "two")
    assert lives(pid)


# --- records in the ledger ------------------------------------------------------------------------------------


@pytest.fixture
def dead_host(tmp_path) -> Path:
    """The ledger directory of a host that has ended; its pid 1 is another process."""
    directory = Path(tmp_path, "run", "children", f"{world()}.1.12345")
    directory.mkdir(parents=True)
    return directory


@pytest.fixture
async def bystander(told):
    """Pid of a group leader that must not be signalled."""
    service = start_service(["sleep", "1000"], cwd="/", env=ENV, listener=told)
    yield service.pid
    service.kill()
    await told.exit()


async def test_a_process_with_a_reused_pid_is_not_killed(tmp_path, dead_host, bystander, lives):
    note = {"pid": bystander, "started": 12345, "what": "extension weather"}
    (dead_host / "0123456789abcdef").write_bytes(msgspec.json.encode(note))
    await sweep(tmp_path)
    assert lives(bystander)
    assert not dead_host.exists()


async def test_the_recorded_process_is_killed(tmp_path, dead_host, bystander, ended):
    child = who(bystander)
    note = {"pid": child.pid, "started": child.started, "what": "extension weather"}
    (dead_host / "0123456789abcdef").write_bytes(msgspec.json.encode(note))
    await sweep(tmp_path)
    await ended(bystander)


async def test_a_child_without_a_recorded_pid_is_found_by_its_mark(tmp_path, dead_host, told, ended):
    (dead_host / "0123456789abcdef").write_bytes(b"")
    marked = {**ENV, MARK: "0123456789abcdef"}
    service = start_service(["sleep", "1000"], cwd="/", env=marked, listener=told)
    await sweep(tmp_path)
    await ended(service.pid)
    assert await told.exit() == -signal.SIGTERM


async def test_records_of_another_machine_or_boot_are_kept_until_they_are_old(tmp_path):
    directory = tmp_path / "run" / "children" / "another-boot.1.12345"
    directory.mkdir(parents=True)
    entry = directory / "0123456789abcdef"
    entry.write_bytes(b"")
    (directory.parent / "a file").write_text("of somebody else")
    await sweep(tmp_path)
    assert entry.exists()
    long_ago = directory.stat().st_mtime - FORGET_S - 60
    os.utime(directory, (long_ago, long_ago))
    await sweep(tmp_path)
    assert not directory.exists()


async def test_the_ledger_is_private_and_names_what_runs(tmp_path, told):
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, "read line", told)
        (entry,) = entries(tmp_path)
        note = msgspec.json.decode(entry.read_bytes())
        assert (note["pid"], note["what"]) == (service.pid, "a test")
        assert [path.stat().st_mode & 0o777 for path in (entry, *entry.parents[:3])] == [0o600, 0o700, 0o700, 0o700]
        service.end_input()
        await told.exit()
    assert list((tmp_path / "run" / "children").iterdir()) == []


# --- parent-death signal --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "mode", "number"),
    [(None, 0o700, errno.ENOENT), ("#!/bin/sh\n", 0o600, errno.EACCES), ("echo no shebang\n", 0o700, errno.ENOEXEC)],
    ids=["missing", "not executable", "no program"],
)
async def test_a_claimed_service_that_cannot_start_reports_the_reason(tmp_path, told, content, mode, number):
    program = tmp_path / "program"
    if content is not None:
        program.write_text(content)
        program.chmod(mode)
    async with opened(tmp_path) as reaper:
        with pytest.raises(OSError) as raised:
            start_service([str(program)], cwd="/", env=ENV, listener=told, claim=reaper.claim("a test"))
    assert raised.value.errno == number
    assert raised.value.filename == str(program)
    assert entries(tmp_path) == []


async def test_a_claimed_service_is_the_program_itself(tmp_path, told):
    async with opened(tmp_path) as reaper:
        argv = [sys.executable, "-I", "-S", "-c", "import os, sys; print(os.getpid(), sys.argv[1:])", "--", "-x"]
        service = start_service(argv, cwd="/", env=ENV, listener=told, claim=reaper.claim("a test"))
        assert await told.exit() == 0
    assert told.out == f"{service.pid} ['--', '-x']\n".encode()
    assert told.err == b""


async def test_a_stray_that_keeps_forking_is_ended_completely(tmp_path, lives, ended):
    spreading = AWAY % 'trap "" TERM; while :; do sleep 1000 & sleep 0.01; done & echo $!'
    told = Told()
    async with opened(tmp_path) as reaper:
        service = claimed(reaper, f"{spreading}; read line", told)
        pid = await told.pid()
        assert lives(pid)
        service.kill()
        async with asyncio.timeout(60):
            await ended(pid)
    assert entries(tmp_path) == []
