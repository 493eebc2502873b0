"""The Unix socket: private at every moment, and never taken from a running daemon."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from zotd.api.context import MAX_CONNECTIONS
from zotd.api.unix import Socket, peer_of
from zotd.client.blocking import connect as open_client
from zotd.testing.live_daemon import DaemonProcess

STARTS = 300
"""With bind and chmod, a slower watcher saw a wider mode in 11 of 3,000 starts."""

NOBODY = 65534


@pytest.fixture
def process(tmp_path):
    daemon = DaemonProcess(tmp_path)
    yield daemon
    if daemon.pid:
        daemon.end(signal.SIGKILL)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_the_socket_is_never_open_to_others_and_never_missing(tmp_path, mask):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    path = folder / "zotd.sock"
    done = threading.Event()
    modes = set()

    def watch():
        while not done.is_set():
            with os.scandir(folder) as found:
                for entry in found:
                    try:
                        modes.add(stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode))
                    except FileNotFoundError:
                        continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = os.umask(mask)
    try:
        for _ in range(STARTS):
            Socket(path).close()
    finally:
        os.umask(before)
        done.set()
        watcher.join()
    assert modes <= {0o600}
    assert modes


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_daemons_directories_are_private_whatever_the_umask(process, mask):
    before = os.umask(mask)
    try:
        process.start()
    finally:
        os.umask(before)
    path = Path(process.place.socket)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, process.place.home, process.place.home / "logs"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in (process.place.home / "zot.db", process.place.home / "logs" / "zotd.log"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def link_elsewhere(run):
    run.parent.joinpath("elsewhere").mkdir(mode=0o700)
    run.symlink_to("elsewhere")


def open_to_others(run):
    run.mkdir()
    run.chmod(0o755)


def owned_by_another_user(run):
    run.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(run, NOBODY, NOBODY)
    else:
        run.chmod(0o777)  # only root could change the owner; tests/test_paths.py covers that case


@pytest.mark.parametrize("prepare", [link_elsewhere, open_to_others, owned_by_another_user])
def test_a_directory_that_is_not_private_is_refused_and_not_changed(process, prepare):
    run = process.place.home / "run"
    run.parent.mkdir(mode=0o700)
    prepare(run)
    before = run.lstat()
    said = process.try_to_start()
    assert said.startswith("error ")
    assert str(run) in said
    assert process.wait() == 1
    assert (run.lstat().st_mode, run.lstat().st_uid) == (before.st_mode, before.st_uid)
    assert list(run.iterdir()) == []


def a_file(path):
    path.write_text("mine")


def a_pipe(path):
    os.mkfifo(path)


def a_directory(path):
    path.mkdir()


def a_dangling_link(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize("prepare", [a_file, a_pipe, a_directory, a_dangling_link])
def test_a_file_that_is_no_socket_is_refused_and_not_changed(process, prepare):
    path = Path(process.place.socket)
    path.parent.mkdir(mode=0o700, parents=True)
    prepare(path)
    before = path.lstat()
    said = process.try_to_start()
    assert said == f"error {path} exists and is not a socket; move it away"
    assert process.wait() == 1
    assert path.lstat() == before


def test_a_second_daemon_is_refused_and_does_not_affect_the_first(process, tmp_path):
    process.start()
    path = Path(process.place.socket)
    inode = path.stat().st_ino
    second = DaemonProcess(tmp_path)
    with open_client(str(path)) as client:
        said = second.try_to_start()
        assert second.wait() == 3
        assert str(process.pid) in said
        assert str(process.place.home) in said
        assert client.call("ping") == {"pong": True}
    assert path.stat().st_ino == inode


def test_the_socket_of_a_killed_daemon_is_replaced(process):
    process.start()
    process.end(signal.SIGKILL)
    assert Path(process.place.socket).is_socket()
    process.start()
    with open_client(process.place.socket) as client:
        assert client.call("daemon.status")["pid"] == process.pid


def test_a_listener_that_holds_no_lock_keeps_its_socket(process):
    path = Path(process.place.socket)
    path.parent.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        assert process.try_to_start().startswith(f"error another program listens on {path}")
        assert process.wait() == 3
        assert path.is_socket()


def test_a_daemon_removes_only_its_own_socket(process):
    process.start()
    assert process.end() == 0
    path = Path(process.place.socket)
    assert not path.exists()
    process.start()
    path.unlink()
    path.write_text("not the daemon's")
    assert process.end() == 0
    assert path.read_text() == "not the daemon's"


def test_a_temporary_socket_of_a_killed_start_is_replaced(tmp_path):
    with socket.socket(socket.AF_UNIX) as half:
        half.bind(str(tmp_path / f".{os.getpid():x}"))
    Socket(tmp_path / "zotd.sock").close()


@pytest.mark.parametrize("length", [103, 104, 108, 200])
@pytest.mark.parametrize("letter", ["h", "\U0001d4bd"])
def test_a_home_of_any_length_works(tmp_path, length, letter):
    base = tmp_path / "x"
    base.mkdir()
    room = length - len(os.fsencode(base)) - len("/" + "/zot/run/zotd.sock")
    size = len(letter.encode())
    folder = base / (letter * (room // size) + "h" * (room % size))
    folder.mkdir()
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    with DaemonProcess(folder, {"XDG_RUNTIME_DIR": str(runtime)}) as daemon, open_client(daemon.place.socket) as client:
        assert len(os.fsencode(daemon.place.home / "run/zotd.sock")) == length
        assert client.call("daemon.status")["socket"] == daemon.place.socket


@pytest.mark.parametrize("runtime", ["", "/no/such/directory", "relative"])
def test_daemon_and_client_agree_on_a_path_without_a_runtime_directory(tmp_path, runtime):
    daemon = DaemonProcess(tmp_path, {"XDG_RUNTIME_DIR": runtime, "ZOT_HOME": "", "TMPDIR": str(tmp_path)})
    with daemon, open_client(daemon.place.socket) as client:
        assert client.call("ping") == {"pong": True}
        assert daemon.place.socket.startswith(str(tmp_path))


def test_a_home_that_cannot_be_created_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    daemon = DaemonProcess(tmp_path, {"ZOT_HOME": str(tmp_path / "file" / "zot")})
    said = daemon.try_to_start()
    assert said.startswith("error ")
    assert str(tmp_path / "file") in said
    assert daemon.wait() == 1
    assert "Traceback" not in daemon.stderr


ANOTHER_USER = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as client:
    client.settimeout(10)
    client.connect(sys.argv[1])
    try:
        client.sendall(b'{"type":"ping"}\\n')
        print(client.recv(100))
    except (BrokenPipeError, ConnectionResetError):
        print(b"")
"""


def test_a_client_of_another_user_is_disconnected_at_once(process):
    if os.geteuid() != 0:
        return  # only root can become another user
    process.start()
    path = Path(process.place.socket)
    # File modes already keep others out; they are opened here to test the check of the uid.
    folders = [*path.parents][: len(path.parents) - 1]
    modes = {folder: folder.stat().st_mode for folder in folders}
    path.chmod(0o666)
    for folder in folders:
        folder.chmod(folder.stat().st_mode | 0o111)
    try:
        answer = subprocess.run(
            [sys.executable, "-c", ANOTHER_USER, str(path)], capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)
    assert (answer.stdout.strip(), answer.stderr) == ("b''", "")
    assert f"refused a connection from uid {NOBODY}" in process.log
    with open_client(str(path)) as client:
        assert client.call("ping") == {"pong": True}


def test_the_peer_is_identified_by_the_kernel():
    one, other = socket.socketpair()
    with one, other:
        assert peer_of(one) == (os.getuid(), os.getpid())


async def test_connections_are_limited_and_existing_ones_continue(connect):
    held = [await connect(client={"name": "tests"}) for _ in range(MAX_CONNECTIONS)]
    extra = await connect()
    assert await extra.rest() == []
    held.pop().cut()
    assert await held[0].ask("ping") == {"pong": True}


async def test_silent_connections_do_not_keep_others_out(connect):
    silent = [await connect() for _ in range(MAX_CONNECTIONS)]
    silent[0].write(b'{"type":"ping"')  # without a newline
    for _ in range(3):
        client = await connect()
        assert await client.ask("ping") == {"pong": True}
    assert [await one.rest() for one in silent[:3]] == [[], [], []]
    assert await silent[3].ask("ping") == {"pong": True}
