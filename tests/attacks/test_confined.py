"""Daemons and commands behind bubblewrap: what is hidden is hidden, and the work is done all the same."""

import os
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.conftest import House
from tests.needs import needs
from zotd.testing.live_daemon import ROOT, DaemonProcess
from zotd.testing.script import CallPart, calls, text

SANDBOX = ROOT / "examples" / "sandbox"

KEY = "the key that nobody may have"

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@pytest.fixture
def user():
    """A home with a key in it, and a runtime directory where a program listens; not in /tmp, which is hidden as a whole."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield from furnished(Path(folder))


def furnished(folder):
    keys, runtime = folder / "user" / ".ssh", folder / "runtime"
    keys.mkdir(parents=True)
    (keys / "id").write_text(KEY)
    runtime.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(runtime / "bus"))
        bus.listen()
        yield folder


@pytest.fixture
async def opened(user):
    """`await opened(*wrapper)`: a house whose daemon runs behind this command."""
    async with AsyncExitStack() as stack:

        async def opened(*wrapper):
            needs("bwrap")
            ours = f"{ROOT}:{sys.prefix}"  # wherever they are: in /tmp nothing is seen that is not named
            env = {"XDG_RUNTIME_DIR": str(user / "runtime"), "USER_KEYS": "hidden", "READ": ours}
            daemon = DaemonProcess(user, env, wrapper=list(map(str, wrapper)))
            stack.enter_context(daemon)
            return House(stack, daemon.place, daemon)

        yield opened


async def outputs(house, model, look, *steps, **env):
    """What each of these commands, or calls, has given the model: output, and whether it failed."""
    made = [CallPart("bash", {"command": step}) if isinstance(step, str) else step for step in steps]
    server = await model(*map(calls, made), text("done"))
    talk = await house.create("openai", server, env={**house.place.env, **env})
    events = await talk.run()
    return [(one["content"][0]["text"], one["is_error"]) for one in look.only(events, "tool_result")]


def shown(result):
    """The first line that a command has printed, below the line that repeats the command."""
    return result.split("\n\n", 1)[1].splitlines()[0]


async def test_a_daemon_in_a_sandbox_works_and_neither_it_nor_its_tools_see_keys_or_other_programs(
    opened, user, model, look
):
    house = await opened(SANDBOX / "confined", user / "work", "--")
    outside = user / "outside"
    outside.write_text("before")
    ssh = user / "user" / ".ssh" / "id"
    found = await outputs(
        house,
        model,
        look,
        f"cat {ssh} {outside}",
        CallPart("read", {"path": str(ssh)}),
        CallPart("write", {"path": str(user / "user" / ".bashrc"), "content": "evil"}),
        f"echo after > {outside}; touch {ROOT}/evil",
        f"python3 -c '{CONNECT}' {user}/runtime/bus",
        f"cat /proc/{os.getpid()}/environ",
        "echo made > made.txt; cat made.txt; exit 3",
        CallPart("write", {"path": "written.txt", "content": "w"}),
    )
    assert KEY not in str(found)
    assert [failed for _, failed in found] == [True, True, False, True, True, True, True, False]
    assert "before" in found[0][0]
    assert "Permission denied" in found[5][0]
    assert "made\n[exit 3]" in found[6][0]
    assert (user / "work" / "made.txt").read_text() == "made\n"
    assert (user / "work" / "written.txt").read_text() == "w"
    assert outside.read_text() == "before"
    assert not (ROOT / "evil").exists()
    assert not (user / "user" / ".bashrc").exists()


async def test_a_command_in_a_sandbox_cannot_reach_the_daemon_nor_the_network(opened, user, model, look):
    house = await opened()
    sandbox = {"PATH": f"{SANDBOX}{os.pathsep}{os.environ['PATH']}"}
    run = user / "zot" / "run"
    commands = [
        f"cat {user}/user/.ssh/id {user}/zot/zot.db",
        f"python3 -c '{CONNECT}' {house.place.socket}",
        f"ls -A {run} {user}/user {user}/runtime",
        f"kill -0 {os.getpid()}",
        "tail -n +3 /proc/net/dev | wc -l",
        "echo made > made.txt; exit 3",
    ]
    keys, connected, hidden, signalled, net, made = await outputs(house, model, look, *commands, **sandbox)
    assert KEY not in keys[0]
    assert (keys[1], connected[1], signalled[1]) == (True, True, True)
    assert "FileNotFoundError" in connected[0]
    assert "id" not in hidden[0].split()
    assert "zotd.sock" not in hidden[0]
    assert "bus" not in hidden[0].split()
    assert shown(net[0]) == "1"  # lo
    assert "[exit 3]" in made[0]
    assert (user / "work" / "made.txt").read_text() == "made\n"
    ((more, _),) = await outputs(house, model, look, commands[4], NET="yes", **sandbox)
    assert int(shown(more)) == len(socket.if_nameindex())


async def test_the_home_itself_is_no_place_to_work_in(opened, user, model, look):
    house = await opened()
    sandbox = {"PATH": f"{SANDBOX}{os.pathsep}{os.environ['PATH']}", "HOME": str(user / "work" / "me")}
    (user / "work" / "me").mkdir()
    ((said, failed),) = await outputs(house, model, look, "echo hi", **sandbox)
    assert failed
    assert "holds your home" in said


def test_nor_is_a_link_to_it(user):
    link = user / "work"
    link.symlink_to(user / "user")
    env = {**os.environ, "HOME": str(user / "user"), "PWD": str(link)}
    done = subprocess.run([SANDBOX / "bash", "-c", "echo hi"], cwd=link, env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (126, b"")
    assert b"holds your home" in done.stderr


async def test_a_daemon_whose_logs_cannot_be_written_works(opened, user, model, look):
    logs = user / "zot" / "logs"
    logs.parent.mkdir(mode=0o700)
    logs.mkdir(mode=0o700)
    house = await opened("bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--ro-bind", logs, logs)
    ((said, failed),) = await outputs(house, model, look, "echo hi")
    assert ("hi" in said, failed) == (True, False)
    assert list(logs.iterdir()) == []
    assert f"the log {logs}/zotd.log cannot be written: Read-only file system" in house.daemon.stderr
