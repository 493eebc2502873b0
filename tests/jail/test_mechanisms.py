"""What commands do in a jail as they do without one, and what a jail refuses to be."""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.jail.conftest import KEY, NOBODY, as_nobody, files, git, repository
from tests.needs import needs
from zotd.jail import MECHANISMS, JailError, Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.process import orphans_adopted, spawn

IDENTITY = "git -c user.name=a -c user.email=a@example.org"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo a > file; cat file", "a\n"),
        ("mkdir -p a b; echo x > a/f; mv a/f b/; cat b/f", "x\n"),
        ("cat ~/notes", "readable"),
        ("echo x > $TMPDIR/f; cat $TMPDIR/f", "x\n"),
        ("echo x > ~/.cache/f; cat ~/.cache/f", "x\n"),
        ("echo x > /dev/null; head -c0 /dev/urandom; echo done >&2", "done\n"),
        ("echo x | tee /dev/stderr >/dev/null", "x\n"),
        ("pwd -P; id -u", f"{{work}}\n{os.getuid()}\n"),
        ("python3 -c 'import multiprocessing as m; m.Lock(); print(1)'", "1\n"),
        ("sleep 1000 & kill $!; wait $!; echo $?", "143\n"),
        ("exit 7", ""),
    ],
)
async def test_ordinary_commands_work(person, jail, command, output):
    assert await person.run(jail, command) == (output.format(work=person.work), 7 if "exit" in command else 0)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_what_is_shown_of_something_hidden_can_be_run_and_not_changed(person, mechanism):
    script = person.home / ".zot" / "skills" / "release" / "run"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho released\n")
    script.chmod(0o755)
    jail = person.jail(mechanism, shown=[script.parent.parent, person.home / ".zot" / "absent"])
    assert await person.run(jail, "~/.zot/skills/release/run") == ("released\n", 0)
    said, code = await person.run(jail, "cat ~/.zot/auth.json; echo x > ~/.zot/skills/release/run")
    assert (KEY in said, code) == (False, 1)
    jail.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_what_is_shown_and_made_later_can_be_read_by_the_next_command(person, mechanism):
    (person.home / ".zot" / "out").mkdir()
    shown = person.home / ".zot" / "out" / "s_1"
    jail = person.jail(mechanism, shown=[shown])
    assert (await person.run(jail, f"cat {shown}/text"))[1] == 1
    shown.mkdir()
    (shown / "text").write_text("x")
    assert await person.run(jail, f"cat {shown}/text") == ("x", 0)
    jail.close()


async def test_git_commits_in_a_repository(person, jail):
    repository(person.work)
    said, code = await person.run(jail, f"echo x > f; git add f && {IDENTITY} commit -qm second && git log --format=%s")
    assert (said, code) == ("second\nfirst\n", 0)


async def test_git_commits_in_a_worktree(person):
    git(repository(person.home / "main"), "worktree", "add", "-q", str(person.home / "tree"))
    for mechanism in MECHANISMS:
        jail = person.jail(mechanism, person.home / "tree")
        said, code = await person.run(jail, f"cd ~/tree; echo {mechanism} > f; git add f; {IDENTITY} commit -qm x 2>&1")
        assert (said, code) == ("", 0)
        jail.close()


async def test_git_commits_in_a_submodule_and_below_a_repository_with_bubblewrap(person):
    library, main = repository(person.home / "library"), repository(person.home / "main")
    git(main, "submodule", "add", "-q", str(library), "sub")
    (main / "src").mkdir()
    for folder in (main / "src", main / "sub"):
        jail = person.jail(Mechanism.BUBBLEWRAP, folder)
        said, code = await person.run(jail, f"cd {folder}; touch f; git add f; {IDENTITY} commit -qm x 2>&1")
        assert (said, code) == ("", 0)


async def test_a_repository_that_a_command_makes_is_protected_from_the_next_one(person):
    jail = person.jail(Mechanism.BUBBLEWRAP)
    assert (await person.run(jail, "git init -q . && git config a.b c && echo made"))[0] == "made\n"
    assert (await person.run(jail, "git config a.b d && echo changed"))[1] != 0


async def test_what_is_made_beside_a_secret_can_be_read_by_the_next_command(person, jail):
    assert (await person.run(jail, "true"))[1] == 0
    (person.home / "later").write_text("x")
    assert await person.run(jail, "cat ~/later") == ("x", 0)


async def test_with_the_network_a_server_of_this_machine_can_be_reached(person):
    async def answer(_, writer):
        writer.write(b"hello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for mechanism in MECHANISMS:
            jail = person.jail(mechanism, network=Network.OPEN)
            assert await person.run(jail, f"cat < /dev/tcp/127.0.0.1/{port}") == ("hello", 0)
            jail.close()


async def test_without_the_network_bubblewrap_leaves_a_loopback(person):
    code = 'import socket as s; a = s.create_server(("127.0.0.1", 0)); s.create_connection(a.getsockname()); print(1)'
    assert await person.run(person.jail(Mechanism.BUBBLEWRAP), f"python3 -c '{code}'") == ("1\n", 0)


async def test_the_thread_that_starts_commands_restricts_no_other_thread(person):
    jail = person.jail(Mechanism.LANDLOCK)
    await person.run(jail, "true")
    jail.close()
    assert await person.run(None, "grep -o 'NoNewPrivs:.*' /proc/self/status; echo x > ~/after; cat ~/after") == (
        "NoNewPrivs:\t0\nx\n",
        0,
    )


async def test_a_command_that_is_stopped_can_clean_up(person, jail):
    child, said = await person.started(
        jail, "trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    )
    await child.stop(grace_s=5)
    assert said.endswith(b"cleaned\n")


async def test_a_command_that_ignores_signals_is_killed(person, jail):
    child, _ = await person.started(jail, "trap '' TERM; echo ready; while :; do sleep 1000; done")
    await child.stop(grace_s=0)
    assert child.returncode in {-signal.SIGKILL, -signal.SIGTERM}  # bwrap itself ends with the first


async def test_with_bubblewrap_what_left_the_group_ends_with_a_stopped_command(person):
    jail = person.jail(Mechanism.BUBBLEWRAP)
    os.mkfifo(person.work / "pipe")
    reader = os.open(person.work / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    # The stray is the only one that holds the pipe, so that the end of the pipe is its end.
    command = "setsid sleep 1000 3> pipe & until [[ -n $(find /proc/$!/fd/3 2>&-) ]]; do :; done; echo ready; wait"
    child, _ = await person.started(jail, command)
    await child.stop()
    async with asyncio.timeout(60):
        await end_of(reader)
    os.close(reader)


async def end_of(reader):
    """Wait until nothing holds the other end of the pipe, to which nothing is written."""
    readable = asyncio.Event()
    asyncio.get_running_loop().add_reader(reader, readable.set)
    await readable.wait()
    asyncio.get_running_loop().remove_reader(reader)
    assert os.read(reader, 1) == b""


async def test_a_command_that_does_not_exist_is_reported(person):
    jail = person.jail(Mechanism.LANDLOCK)
    with pytest.raises(FileNotFoundError):
        spawn(["/absent"], cwd=str(person.work), env=person.env, on_output=lambda _: None, jail=jail)


def test_landlock_refuses_to_hide_what_is_in_the_temporary_directory(person):
    (person.root / "tmp" / "zot").mkdir()
    env = {**person.env, "ZOT_HOME": str(person.root / "tmp" / "zot")}
    with pytest.raises(JailError, match="cannot hide"):
        find_jail(JailSite(str(person.work), env, Network.OFF), [Mechanism.LANDLOCK])


async def test_bubblewrap_hides_what_is_in_the_temporary_directory(person):
    (person.root / "tmp" / "zot").mkdir()
    (person.root / "tmp" / "zot" / "auth.json").write_text("key")
    env = {**person.env, "ZOT_HOME": str(person.root / "tmp" / "zot")}
    jail = find_jail(JailSite(str(person.work), env, Network.OFF), [Mechanism.BUBBLEWRAP])
    assert (await person.run(jail, "ls $TMPDIR/zot")) == ("", 0)


async def test_a_working_directory_that_became_a_link_starts_nothing(person, jail):
    person.work.rename(person.home / "moved")
    person.work.symlink_to(person.home / "moved")
    (person.home / "changed").touch()
    with pytest.raises(JailError, match="leads through a link"):
        await person.run(jail, "true")


def test_a_bwrap_that_commands_may_change_is_not_used(person, only_path):
    needs("bwrap")
    installed = shutil.which("bwrap")
    assert installed is not None
    shutil.copy(installed, person.work / "bwrap")
    only_path(person.work)
    with pytest.raises(JailError, match="may change"):
        person.jail(Mechanism.BUBBLEWRAP)


def test_without_a_mechanism_the_reasons_are_named(person, only_path):
    only_path(person.root)
    with pytest.raises(JailError, match="not installed"):
        find_jail(JailSite(str(person.work), person.env, Network.OFF), [Mechanism.BUBBLEWRAP])


async def test_a_program_that_adopts_orphans_has_no_child_left_after_a_jail_was_tried(person):
    with orphans_adopted():
        person.jail(Mechanism.BUBBLEWRAP)
        assert not has_children()


def has_children():
    """Whether this process has children, also ones that have ended."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


@pytest.fixture
def only_path():
    """`only_path(folder)`: programs are looked for in this directory only, until the test ends."""
    before = os.environ["PATH"]
    yield lambda folder: os.environ.update(PATH=str(folder))
    os.environ["PATH"] = before


AS_NOBODY = """
import asyncio, os, sys
from zotd.jail import Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.process import orphans_adopted, spawn

async def main(root, mechanism):
    env = {"HOME": f"{root}/home", "TMPDIR": f"{root}/tmp", "XDG_RUNTIME_DIR": f"{root}/runtime", "PATH": os.environ["PATH"]}
    jail = find_jail(JailSite(f"{root}/home/work", env, Network.OFF), [Mechanism(mechanism)])
    said = bytearray()
    command = "id -u; touch here; cat ~/.ssh/id; touch ~/planted; ls here ~/planted"
    child = spawn(["/bin/sh", "-c", command], cwd=jail.policy.cwd, env=env, on_output=said.extend, jail=jail)
    await child.wait()
    print(said.decode())

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_without_privileges_has_a_jail(person, mechanism):
    needs("bwrap")
    told = as_nobody(person, AS_NOBODY, mechanism)
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == str(NOBODY)
    assert "here" in lines
    assert not any("the key" in line for line in lines)
    assert not (person.home / "planted").exists()


PROXIED_AS_NOBODY = """
import asyncio, os, sys
from zotd.jail import Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.process import orphans_adopted, spawn
from zotd.proxy import AllowList, parse_rule
from zotd.proxy.server import running_proxy
from zotd.proxy.namespaces import NamespaceStock, maker_words

# Takes the loopback down.
DOWN = "import fcntl, socket; fcntl.ioctl(socket.socket(), 0x8914, b'lo'.ljust(16, bytes(1)) + bytes(24))"

class Connected:
    def __init__(self, jail, outlet):
        self.start = lambda argv, start: jail.start(argv, start, outlet)

async def main(root, python, host):
    env = {"HOME": f"{root}/home", "TMPDIR": f"{root}/tmp", "XDG_RUNTIME_DIR": f"{root}/runtime", "PATH": os.environ["PATH"]}
    stock = NamespaceStock(1, [python, *maker_words()[1:]])
    async with running_proxy(f"{root}/runtime/outlets", lambda _: None, namespaces=stock) as proxy:
        print(await proxy.prepare())
        jail = find_jail(JailSite(f"{root}/home/work", env, Network.PROXIED), [Mechanism.BUBBLEWRAP])
        connected = Connected(jail, proxy.outlet("nobody", AllowList([parse_rule(host)])))
        said = bytearray()
        gain = f'unshare -r {python} -c "{DOWN}" 2>&1 | tail -1'
        command = f"{gain}; id -u; curl -sS http://{host}/notes; grep -c unshare-ne[t] /proc/1/cmdline"
        argv = ["/bin/bash", "-c", command]
        await spawn(argv, cwd=jail.policy.cwd, env=env, on_output=said.extend, jail=connected).wait()
        print(said.decode())

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_user_without_privileges_has_namespaces_that_are_made_ahead(person):
    needs("bwrap", "curl", "nsenter")
    with files(person.home) as port:
        told = as_nobody(person, PROXIED_AS_NOBODY, python_of_all(), f"127.0.0.3:{port}")
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0] == "1", told.stderr
    assert "PermissionError: [Errno 1] Operation not permitted" in told.stdout
    assert told.stdout.splitlines()[-3:] == [str(NOBODY), "readable0", ""]


def python_of_all():
    """An interpreter that every user may run; this one may be in a home that others cannot enter."""
    own = Path(sys.executable).resolve()
    return str(own) if all(folder.stat().st_mode & 1 for folder in own.parents) else "/usr/bin/python3"
