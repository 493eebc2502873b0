"""The files of a session follow it to a daemon of another machine, on which it has a directory with the same path.

Each machine is a mount namespace, in which the same path leads to a directory of its own.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from contextlib import AsyncExitStack

import pytest

from tests.checkpoints.conftest import git
from tests.e2e.conftest import House
from tests.e2e.fleet import FAILOVER_S, name_of, number_of, row, until
from tests.needs import needs
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text

# Of another user's server, root of a user namespace cannot open the socket.
UNSHARE = ("unshare", "--mount") if os.getuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'


class Machine(House):
    """A daemon with a place of its own, and a disk of its own at the path that both machines use."""

    def __init__(self, stack, daemon, disk):
        super().__init__(stack, daemon.place, daemon)
        self.work = disk / "work"
        """The session's directory, as it is on this machine."""


@pytest.fixture
def shared(tmp_path):
    needs("git", "unshare")
    if subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine has no mount namespaces for users")
    place = tmp_path / "shared.git"
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    return place


@pytest.fixture
def cwd(tmp_path):
    """The session's directory, by the path that both machines use."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk" / "work"


@pytest.fixture
async def machines(database, tmp_path, key_file, shared, cwd):
    """Two machines."""
    async with AsyncExitStack() as stack:
        found = []
        for name in ("one", "two"):
            disk = tmp_path / f"disk-of-{name}"
            (tmp_path / name).mkdir()
            disk.mkdir()
            variables = {
                "ZOT_JOURNAL_URL": database,
                "ZOT_LIMITS_DRAIN_S": "60",
                "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0",
                "ZOT_FLEET_KEY_FILE": str(key_file),
                "ZOT_FLEET_WORKSPACES": str(shared),
                "ZOT_FLEET_PLACE": f"box-{name}",
                "ZOT_RESUME": "auto",
            }
            mounted = [*UNSHARE, "sh", "-c", MOUNT, str(disk), str(cwd.parent)]
            daemon = stack.enter_context(DaemonProcess(tmp_path / name, variables, wrapper=mounted))
            found.append(Machine(stack, daemon, disk))
        await until(database, "SELECT count(*) = 2 FROM daemons WHERE address <> ''")
        found[0].work.mkdir()
        yield found


def bash(command):
    return calls(CallPart("bash", {"command": command}))


def copies(shared):
    return git(shared, "for-each-ref") if shared.exists() else ""


async def until_copied(shared, session, before=None, *, is_there=True):
    """The references of the shared repository, as soon as they have files of the session, other than before."""

    def wait():
        while (session in (found := copies(shared))) != is_there or found == before:
            pass  # git does not report it
        return found

    async with asyncio.timeout(FAILOVER_S):
        return await asyncio.to_thread(wait)


def files_of(house):
    """The names of what is at the path of the session's directory, and beside it."""
    return sorted(one.name for one in house.work.parent.iterdir())


async def move(house, talk):
    admin = await house.connect(client={"name": "test"}, role="admin")
    return await admin.answer("session.move", session=talk.id, to="")


async def refused(talk):
    """Wait until the session takes no prompts, because it is being moved."""
    while (await talk.client.answer("prompt", session=talk.id, message="x", when_busy="reject"))["code"] == "busy":
        pass


GOES_ON = ("running", "held")
"""States of a session whose run has been handed over: it is held for a moment."""


async def rested(house, talk, but=("running",)):
    """The session as this daemon has it, when it is in none of these states."""
    found = await house.follow(talk.id)
    while await found.state() in but:
        await found.client.event()
    return found


async def test_a_run_that_is_moved_goes_on_with_its_files(machines, talk_in, cwd):
    one, two = machines
    write = bash("echo one > a; echo started; until test -e go; do sleep 0.05; done; rm go")
    talk = await talk_in(one, write, bash("cat a; echo two >> a"), text("done"), cwd=str(cwd))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        (one.work / "go").touch()
    assert moving.result()["data"] == {"daemon": name_of(two)}
    moved = await rested(two, talk, GOES_ON)
    assert (two.work / "a").read_text() == "one\ntwo\n"
    assert (one.work / "a").read_text() == "one\n"
    said = str(await moved.texts())
    assert "its files were brought there" in said
    assert "done" in said


async def test_a_killed_machine_leaves_the_files_of_the_last_step_and_cannot_overwrite_later_ones(
    machines, talk_in, cwd, shared, database
):
    one, two = machines
    talk = await talk_in(one, bash("echo one > a"), text("done"), bash("echo two > a"), text("there"), cwd=str(cwd))
    await talk.run("go")
    await until_copied(shared, talk.id)
    one.daemon.end(signal.SIGKILL)
    await until(database, "SELECT count(*) = 1 FROM daemons")
    moved = await two.follow(talk.id)
    before = copies(shared)
    seen = await moved.run("and now")
    assert "brought 1 file from box-one" in str(seen)
    assert (two.work / "a").read_text() == "two\n"
    await until_copied(shared, talk.id, before)
    assert (one.work / "a").read_text() == "one\n"


async def test_a_machine_that_was_paused_cannot_overwrite_files_of_the_one_that_goes_on(
    machines, talk_in, cwd, shared, database
):
    one, two = machines
    late = bash("echo started; until test -e go; do sleep 0.05; done; echo late > a")
    talk = await talk_in(one, bash("echo one > a"), late, bash("echo two > a"), text("there"), cwd=str(cwd))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    await until_copied(shared, talk.id)
    os.kill(one.daemon.child, signal.SIGSTOP)
    gone = number_of(database, one)
    await until(database, "SELECT NOT EXISTS (SELECT 1 FROM daemons WHERE number = %s)", gone)
    moved = await rested(two, talk)
    (one.work / "go").touch()
    os.kill(one.daemon.child, signal.SIGCONT)
    await until(database, "SELECT count(*) = 2 FROM daemons")
    assert (two.work / "a").read_text() == "two\n"
    await moved.client.ask("session.close", session=talk.id)
    reference = f"refs/zot/files/{talk.id}:files/a"
    assert git(shared, "show", reference) == "two\n"


async def test_files_of_a_person_are_not_overwritten_and_the_session_can_be_read(machines, talk_in, cwd):
    one, two = machines
    talk = await talk_in(one, bash("echo one > a"), text("done"), text("never"), cwd=str(cwd))
    await talk.run("go")
    two.work.mkdir()
    (two.work / "a").write_text("mine")
    assert (await move(one, talk))["success"]
    moved = await two.follow(talk.id)
    refusal = await moved.client.answer("prompt", session=talk.id, message="and now")
    assert refusal["error"] == (
        f"the files of the session are not here: {cwd} exists here and is not known to have files of this session, whose "
        "files are from box-one; move the directory away, or check out the same commit there without changes"
    )
    await moved.ask("shell", command="echo lost > a")
    assert "not run: the files of the session are not here" in str(await moved.until("done"))
    assert (two.work / "a").read_text() == "mine"
    assert "done" in str(await moved.texts())
    shutil.rmtree(two.work)
    await moved.run("now it can")
    assert (two.work / "a").read_text() == "one\n"


async def test_changes_of_both_machines_are_kept_when_the_session_comes_back(machines, talk_in, cwd):
    one, two = machines
    turns = [bash("echo one | tee a > b"), text("done"), bash("echo two | tee a > b"), text("there"), text("back")]
    talk = await talk_in(one, *turns, cwd=str(cwd))
    await talk.run("go")
    await move(one, talk)
    moved = await two.follow(talk.id)
    await moved.run("change both")
    (one.work / "b").write_text("mine")
    assert (await move(two, moved))["data"] == {"daemon": name_of(one)}
    back = await one.follow(talk.id)
    seen = str(await back.run("and now"))
    assert (one.work / "a").read_text() == "two\n"
    assert (one.work / "b").read_text() == "mine"
    assert "left alone: b: changed since it was last recorded" in seen
    assert "These files were changed there meanwhile, and are as they were there: b." in str(await back.texts())


async def test_commits_of_the_other_machine_are_checked_out_when_the_session_comes_back(machines, talk_in, cwd):
    one, two = machines
    made = "git -c user.name=t -c user.email=t@t commit -q"
    turns = [
        *(bash(f"git init -q -b main && echo one > a && git add a && {made} -m one"), text("done")),
        *(bash(f"echo two > a && {made} -a -m two"), text("there"), text("back")),
    ]
    talk = await talk_in(one, *turns, cwd=str(cwd))
    await talk.run("go")
    await move(one, talk)
    moved = await two.follow(talk.id)
    await moved.run("commit")
    await move(two, moved)
    back = await one.follow(talk.id)
    await back.run("and now")
    assert git(one.work, "log", "--format=%s") == "two\none\n"
    assert git(one.work, "status", "--porcelain", "--branch") == "## main\n"


async def test_steps_go_on_while_the_shared_repository_is_away_and_the_session_says_so(
    machines, talk_in, cwd, shared, tmp_path
):
    one, two = machines
    turns = [bash("echo one > a"), text("done"), bash("echo two > a"), text("on"), text("again"), text("there")]
    talk = await talk_in(one, *turns, cwd=str(cwd))
    await talk.run("go")
    await until_copied(shared, talk.id)
    shared.rename(tmp_path / "away")
    await talk.ask("prompt", message="go on")
    said = list[dict[str, object]]()
    while not (any(one["type"] == "done" for one in said) and "are not stored in" in str(said)):
        said.append(await talk.client.event())
    assert (one.work / "a").read_text() == "two\n"
    refusal = await move(one, talk)
    assert refusal["error"].startswith("the files of the session cannot be stored: ")
    (tmp_path / "away").rename(shared)
    await talk.run("again")
    assert (await move(one, talk))["success"]
    moved = await two.follow(talk.id)
    await moved.run("and now")
    assert (two.work / "a").read_text() == "two\n"


async def test_a_session_stays_and_waits_if_its_files_cannot_be_stored_while_it_is_moved(
    machines, talk_in, cwd, shared, tmp_path
):
    one, _ = machines
    write = bash("echo one > a; echo started; until test -e go; do sleep 0.05; done; echo two > a")
    talk = await talk_in(one, write, text("all done"), cwd=str(cwd))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(one, talk))
        await refused(talk)
        shared.rename(tmp_path / "away")
        (one.work / "go").touch()
    assert moving.result()["error"].startswith("the files of the session cannot be stored: ")
    here = await rested(one, talk)
    (tmp_path / "away").rename(shared)
    await here.ask("run_command", name="continue")
    await here.until("done")
    assert (await here.texts())[-1] == ("assistant", ["all done"])
    assert (one.work / "a").read_text() == "two\n"


async def test_a_drained_daemon_does_not_hand_over_a_session_whose_files_cannot_be_stored(
    machines, talk_in, cwd, shared, tmp_path, database
):
    one, _ = machines
    write = bash("echo one > a; echo started; until test -e go; do sleep 0.05; done; echo two > a")
    talk = await talk_in(one, write, text("never"), cwd=str(cwd))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    shared.rename(tmp_path / "away")
    admin = await one.connect(client={"name": "test"}, role="admin")
    await admin.ask("daemon.drain")
    (one.work / "go").touch()
    one.daemon.wait()
    assert row(database, "SELECT owner, state FROM sessions WHERE id = %s", talk.id) == (None, "held")
    assert row(database, "SELECT count(*) FROM handovers") == (0,)


async def test_a_drained_daemon_hands_over_files_with_its_sessions(machines, talk_in, cwd):
    one, two = machines
    write = bash("echo one > a; echo started; until test -e go; do sleep 0.05; done; echo two > a; rm go")
    talk = await talk_in(one, write, bash("cat a; echo three >> a"), text("done"), cwd=str(cwd))
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")
    admin = await one.connect(client={"name": "test"}, role="admin")
    await admin.ask("daemon.drain")
    (one.work / "go").touch()
    one.daemon.wait()
    await rested(two, talk, GOES_ON)
    assert (two.work / "a").read_text() == "two\nthree\n"


async def test_a_session_whose_directory_is_nowhere_can_be_read_and_says_so(machines, talk_in, cwd, shared, database):
    one, two = machines
    talk = await talk_in(one, text("done"), text("never"), cwd=str(cwd))
    await talk.run("go")
    one.daemon.end(signal.SIGKILL)
    await until(database, "SELECT count(*) = 1 FROM daemons")
    git(shared, "update-ref", "-d", f"refs/zot/files/{talk.id}")
    moved = await two.follow(talk.id)
    assert "done" in str(await moved.texts())
    refusal = await moved.client.answer("prompt", session=talk.id, message="and now")
    assert refusal["error"] == (
        f"the files of the session are not here: {cwd} does not exist here, and {shared} has no files of the session; "
        "move the session to a daemon that has them, or make the directory"
    )
    assert files_of(two) == []


async def test_files_of_a_deleted_session_are_removed(machines, talk_in, cwd, shared):
    one, _ = machines
    talk = await talk_in(one, bash("echo one > a"), text("done"), cwd=str(cwd))
    await talk.run("go")
    await until_copied(shared, talk.id)
    admin = await one.connect(client={"name": "test"}, role="admin")
    await admin.ask("session.delete", session=talk.id)
    await until_copied(shared, talk.id, is_there=False)
