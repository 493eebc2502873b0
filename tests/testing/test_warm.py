"""The template process that all test processes of one run use."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

SOURCE = """
import sys
from zotd.testing import warm
warm.PROGRAMS, warm.LAZY = ("json.tool",), ()
print(warm.command("json.tool")[4], flush=True)
sys.stdin.read()
"""
"""A test process: prints the socket, and lives until its standard input ends."""


def templates(socket):
    """The pids of the processes that serve at this socket."""
    served = [(int(entry.name), entry / "cmdline") for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid, line in served if f"--detach\0{socket}\0".encode() in read(line)]


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


async def test_the_processes_of_a_run_share_it_and_it_ends_with_the_last_of_them(tmp_path, ended):
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTEST_XDIST_TESTRUNUID": "run"}
    env.pop("COVERAGE_PROCESS_START", None)
    with ExitStack() as stack:

        def start():
            process = subprocess.Popen(
                [sys.executable, "-c", SOURCE], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.kill)
            return stack.enter_context(process)

        processes = [start() for _ in range(3)]
        sockets = {process.stdout.readline().strip() for process in processes if process.stdout}
        assert len(sockets) == 1
        socket = sockets.pop()
        (template,) = templates(socket)
        for process in processes:
            assert templates(socket) == [template]
            assert process.stdin is not None
            process.stdin.close()
            process.wait(20)
        await ended(template)
    assert list(tmp_path.iterdir()) == []


ADOPTING = """
import ctypes, os
import psutil
from zotd.testing import warm
warm.PROGRAMS, warm.LAZY = ("json.tool",), ()
prctl, is_subreaper = ctypes.CDLL(None).prctl, ctypes.c_int()
prctl(36, 1, 0, 0, 0)
warm.command("json.tool")
prctl(37, ctypes.byref(is_subreaper), 0, 0, 0)
print(psutil.Process().children(), is_subreaper.value)
"""
"""A test process that adopts orphans, as a daemon does, and that is the first to need the template process."""


def test_it_is_no_child_of_a_test_process_that_adopts_orphans(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    for name in ("COVERAGE_PROCESS_START", "PYTEST_XDIST_TESTRUNUID"):
        env.pop(name, None)
    found = subprocess.run([sys.executable, "-c", ADOPTING], env=env, capture_output=True, text=True, check=True)
    assert found.stdout == "[] 1\n"
