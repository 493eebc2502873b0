"""The descriptor store: ours over a real datagram socket, the fake one, and inherited descriptors."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from zotd.process.fdstore import inherited, is_restarting, store_of
from zotd.testing.fd_store import FakeStore, ServiceManager


class Real:
    """The real store, with a service manager that collects the descriptors."""

    def __init__(self, manager):
        self._manager = manager
        store = store_of(manager.env)
        assert store is not None
        self._store = store

    def put(self, name, fds):
        return self._store.put(name, fds)

    def remove(self, name):
        self._store.remove(name)

    def found(self):
        self._manager.settle()
        return self._manager.store.found()


@pytest.fixture
def folder():
    """A directory with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="zot-") as path:
        yield Path(path)


@pytest.fixture(params=["real", "fake"])
def store(request, folder):
    with ExitStack() as stack:
        if request.param == "fake":
            fake = FakeStore()
            stack.callback(fake.close)
            yield fake
        else:
            yield Real(stack.enter_context(ServiceManager(folder)))


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def found(store):
    """Return what the next daemon would inherit: inodes by name."""
    inodes = {}
    for name, fds in store.found().items():
        inodes[name] = {os.fstat(fd).st_ino for fd in fds}
        for fd in fds:
            os.close(fd)
    return inodes


def test_stored_descriptors_are_found_by_name(store, pipe):
    assert store.put("ext-1", pipe)
    assert found(store) == {"ext-1": {os.fstat(fd).st_ino for fd in pipe}}


def test_a_stored_pipe_stays_open_after_its_owner_closes_it(store):
    readable, writable = os.pipe()
    assert store.put("ext-1", [writable])
    os.write(writable, b"before")
    os.close(writable)
    [again] = store.found()["ext-1"]
    os.write(again, b" and after")
    os.close(again)
    assert os.read(readable, 100) == b"before and after"
    os.close(readable)


def test_descriptors_stored_later_under_a_name_are_added(store, pipe):
    assert store.put("ext-1", pipe[:1])
    assert store.put("ext-1", pipe[1:])
    assert store.put("ext-2", pipe[1:])
    assert {name: len(fds) for name, fds in _counted(store).items()} == {"ext-1": 2, "ext-2": 1}


def test_removing_a_name_removes_only_its_descriptors(store, pipe):
    for name in ("ext-1", "ext-2"):
        assert store.put(name, pipe)
    store.remove("ext-1")
    assert list(found(store)) == ["ext-2"]


def test_removing_an_unknown_name_has_no_effect(store):
    store.remove("ext-1")
    assert found(store) == {}


def _counted(store):
    fds = store.found()
    for one in fds.values():
        for fd in one:
            os.close(fd)
    return fds


def test_put_fails_if_the_service_manager_is_gone(folder, pipe):
    store = store_of({"NOTIFY_SOCKET": str(folder / "nobody"), "ZOTD_FDSTORE": "zotd.service"})
    assert store is not None
    assert not store.put("ext-1", pipe)
    store.remove("ext-1")


@pytest.mark.parametrize("env", [{}, {"NOTIFY_SOCKET": "/run/x"}, {"ZOTD_FDSTORE": "zotd.service"}])
def test_there_is_no_store_if_the_unit_does_not_announce_one(env):
    assert store_of(env) is None


SHOW = """
import os, json
from zotd.process.fdstore import inherited
found = inherited(os.environ)
print(json.dumps({name: [os.get_inheritable(fd) for fd in fds] for name, fds in found.items()}))
"""


def test_passed_descriptors_are_found_by_name(folder, pipe):
    with ServiceManager(folder) as manager:
        for name, fds in {"zotd.socket": pipe[:1], "ext-1": pipe}.items():
            manager.store.put(name, fds)
        told = subprocess.run([*manager.wrapper, sys.executable, "-c", SHOW], capture_output=True, check=True)
    assert told.stdout.decode().strip() in {
        '{"ext-1": [false, false], "zotd.socket": [false]}',
        '{"zotd.socket": [false], "ext-1": [false, false]}',
    }


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"LISTEN_PID": "1", "LISTEN_FDS": "2"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "many"},
        {"LISTEN_PID": str(os.getpid())},
        {"LISTEN_FDS": "2"},
    ],
)
def test_descriptors_for_another_process_are_ignored(env):
    assert inherited(env) == {}


async def test_an_unknown_unit_is_not_restarting(monkeypatch, folder):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert not await is_restarting("zotd-no-such-unit.service")


@pytest.mark.parametrize(
    ("jobs", "is_so"),
    [
        ("12 zotd.service restart running\n", True),
        ("11 other.service restart waiting\n12 zotd.service stop running\n", False),
        ("12 zotd.service start waiting\n", False),
        ("", False),
    ],
)
async def test_only_a_restart_job_of_this_unit_counts(monkeypatch, folder, jobs, is_so):
    program = folder / "systemctl"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{jobs}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert await is_restarting("zotd.service") is is_so
