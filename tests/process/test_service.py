"""Services: their pipes, their exit, and the end of their group."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from zotd.process import start_service
from zotd.process.input import MAX_FRAMES, PipeWriter

ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
def shell(tmp_path, told):
    """Starts a shell command as a service."""

    def start(command: str):
        return start_service(["sh", "-c", command], cwd=str(tmp_path), env=ENV, listener=told)

    return start


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_service_answers_and_exits_at_the_end_of_its_input(shell, told):
    service = shell("while read -r line; do echo got $line; done; echo bye >&2")
    service.write(b"one\n")
    await told.until(lambda: told.out == b"got one\n")
    service.write(b"two\n")
    service.end_input()
    service.write(b"three\n")
    assert await told.exit() == 0
    assert (told.out, told.err) == (b"got one\ngot two\n", b"bye\n")
    assert not service.is_alive


async def test_all_output_is_delivered_before_the_exit_even_if_paused(shell, told):
    service = shell("echo out; echo err >&2; exit 3")
    service.pause_output()
    service.pause_errors()
    assert await told.exit() == 3
    assert (told.out, told.err) == (b"out\n", b"err\n")


async def test_a_resumed_service_is_read_again(shell, told):
    service = shell("echo out; echo err >&2; cat")
    service.pause_output()
    service.pause_errors()
    service.resume_output()
    service.resume_errors()
    await told.until(lambda: told.out and told.err)
    service.end_input()
    await told.exit()


async def test_the_group_ends_with_the_service_even_if_it_holds_the_pipes(shell, told, ended):
    shell("trap '' TERM; sleep 100 & echo $!; exit 4")
    assert await told.exit() == 4
    await ended(int(told.out))


async def test_a_closed_pipe_is_reported(shell, told):
    service = shell("exec >&-; read line; exec <&-; sleep 100")
    await told.until(lambda: told.closes == ["stdout"])
    service.write(b"go\n")
    await told.until(lambda: told.closes == ["stdout", "stdin"])
    service.write(b"more\n")
    service.kill()
    assert await told.exit() == -signal.SIGKILL
    assert told.stalls == []


async def test_terminate_signals_the_whole_group(shell, told):
    service = shell("trap 'exit 5' TERM; echo ready; sleep 100 & wait")
    await told.until(lambda: told.out)
    service.terminate()
    assert await told.exit() == 5
    service.terminate()  # has no effect: the service has ended
    service.kill()


async def test_a_service_that_does_not_read_stalls_when_the_queue_is_full(shell, told):
    service = shell("sleep 100")
    for _ in range(MAX_FRAMES + 10):
        service.write(b"x" * 2_000)
    assert told.stalls == []  # the pipe itself holds the first 64 KiB
    for _ in range(40):
        service.write(b"x" * 2_000)
    assert told.stalls == ["did not read its input: more than 256 frames were waiting"]
    service.write(b"more\n")
    service.end_input()
    service.kill()
    await told.exit()


async def test_the_queue_is_limited_in_bytes_as_well(shell, told):
    service = shell("sleep 100")
    for _ in range(5):
        service.write(b"x" * 4_000_000)
    assert told.stalls == ["did not read its input: more than 16 MiB were waiting"]
    service.kill()
    await told.exit()


async def test_a_slow_reader_gets_everything_in_order(shell, told):
    service = shell("sleep 0.05; wc -c")
    for _ in range(3):
        service.write(b"x" * 1_000_000)
    service.end_input()
    assert await told.exit() == 0
    assert told.out.strip() == b"3000000"
    assert told.stalls == []


async def test_a_command_that_cannot_start_raises_and_leaks_no_descriptor(tmp_path, told):
    before = open_files()
    with pytest.raises(FileNotFoundError):
        start_service(["no-such-program"], cwd=str(tmp_path), env=ENV, listener=told)
    with pytest.raises(ValueError, match="null byte"):
        start_service(["sh", "\0"], cwd=str(tmp_path), env=ENV, listener=told)
    assert open_files() == before


async def test_services_leave_no_descriptor(shell, told):
    shell("true")
    await told.exit()
    before = open_files()
    told.code = None
    shell("true")
    await told.exit()
    assert open_files() == before


# --- PipeWriter -----------------------------------------------------------------------------------------------


async def test_no_progress_within_the_time_limit_is_a_stall(pipe_ends):
    _, writable = pipe_ends
    stalled: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    target = PipeWriter(writable, on_stall=stalled.set_result, on_closed=pytest.fail, stall_s=0.05)
    target.write(b"x" * 1_000_000)
    async with asyncio.timeout(60):
        assert await stalled == "did not read its input for 0.05 s"
    target.write(b"more")
    target.close()


async def test_progress_restarts_the_stall_timeout(pipe_ends):
    readable, writable = pipe_ends
    target = PipeWriter(writable, on_stall=pytest.fail, on_closed=pytest.fail)
    target.write(b"x" * 1_000_000)
    clock = target._stalled
    async with asyncio.timeout(60):
        while target._stalled is clock:
            os.read(readable, 50_000)
            await asyncio.sleep(0)
    assert clock is not None
    assert clock.cancelled()
    target.close()


@pytest.fixture
def pipe_ends():
    readable, writable = os.pipe()
    yield readable, writable  # the write end is closed by its `PipeWriter`
    os.close(readable)


RECEIVER = """
import os, socket
connection = socket.socket(fileno=os.dup(0))
while True:
    message, descriptors, _, _ = socket.recv_fds(connection, 3, 1)
    if not message:
        break
    for descriptor in descriptors:
        os.write(descriptor, b"got " + message)
        os.close(descriptor)
    print(message.decode(), flush=True)
"""


async def test_a_service_whose_stdin_is_a_socket_gets_descriptors(tmp_path, told):
    argv = [sys.executable, "-S", "-c", RECEIVER]
    service = start_service(argv, cwd=str(tmp_path), env=ENV, listener=told, takes_descriptors=True)
    readable, writable = os.pipe()
    service.pass_on(b"one", [writable])
    os.close(writable)
    service.pass_on(b"two", [])
    await told.until(lambda: told.out == b"one\ntwo\n")
    with os.fdopen(readable, "rb") as pipe:
        assert pipe.read() == b"got one"
    service.end_input()
    assert await told.exit() == 0
    with pytest.raises(BrokenPipeError):
        service.pass_on(b"six", [])


def pass_on_for_ever(service):
    while True:
        service.pass_on(b"one", [])


async def test_a_service_that_does_not_read_its_socket_is_not_waited_for(tmp_path, told):
    argv = ["sleep", "600"]
    service = start_service(argv, cwd=str(tmp_path), env=ENV, listener=told, takes_descriptors=True)
    with pytest.raises(BlockingIOError):
        pass_on_for_ever(service)
    service.kill()
    assert await told.exit() == -signal.SIGKILL
