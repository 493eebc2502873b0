"""Lock files that name their holder, while real processes hold them and are killed."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from zotd import pid_lock

HOLDER = """
import os, sys, time
from pathlib import Path
from zotd import pid_lock

lock = pid_lock.acquire(Path(sys.argv[1]))
if os.fork() == 0:  # inherits the lock, as a child does between vfork and exec
    sys.stdout.write(f"{os.getpid()}\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    os._exit(0)
time.sleep(600)
"""


@pytest.fixture
def killed_holder(tmp_path):
    """A process that locked `lock` and was killed, while its child still holds the lock: the process."""
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        holder.kill()
        holder.wait()
        yield holder
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def test_the_file_names_the_process_that_holds_the_lock(tmp_path):
    lock = pid_lock.acquire(tmp_path / "lock")
    with pytest.raises(pid_lock.LockedError) as error:
        pid_lock.acquire(tmp_path / "lock")
    assert (error.value.holder, error.value.is_alive) == (str(os.getpid()), True)
    os.close(lock)
    os.close(pid_lock.acquire(tmp_path / "lock"))


def test_a_lock_is_waited_for_while_only_the_child_of_a_killed_holder_has_it(tmp_path, killed_holder, monkeypatch):
    monkeypatch.setattr(pid_lock, "RETRY_S", 0.0)
    tries = []

    def until_it_is_released(lock, _try=pid_lock._try_lock):
        tries.append(lock)
        if len(tries) == 3:  # the child has been refusing the lock so far
            killed_holder.stdin.close()
        return _try(lock)

    monkeypatch.setattr(pid_lock, "_try_lock", until_it_is_released)
    lock = pid_lock.acquire(tmp_path / "lock", wait_s=30)
    assert len(tries) >= 3
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    os.close(lock)


def test_a_child_that_keeps_the_lock_is_told_apart_from_a_living_holder(tmp_path, killed_holder):
    with pytest.raises(pid_lock.LockedError) as error:
        pid_lock.acquire(tmp_path / "lock", wait_s=0)
    assert (error.value.holder, error.value.is_alive) == (str(killed_holder.pid), False)
