"""Undo, redo and rewind of what runs do to files, in a real daemon."""

import asyncio
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.conftest import only
from tests.needs import needs
from zotd.checkpoints.checkpoints import Checkpoints
from zotd.testing.script import CallPart, calls, text


def write(path, content):
    return calls(CallPart("write", {"path": str(path), "content": content}))


def bash(command):
    return calls(CallPart("bash", {"command": command}))


@pytest.fixture
def work(house):
    needs("git")
    folder = house.cwd
    (folder / "kept.txt").write_text("as it was")
    return folder


@pytest.fixture
def opened(house, model):
    """Opens a session whose model gives these answers."""

    async def create(*answers, **options):
        return await house.create("openai", await model(*answers), **options)

    return create


async def refusal(talk, command, **fields):
    """Code and sentence of a request that fails."""
    response = await talk.client.answer(command, session=talk.id, **fields)
    assert not response["success"], response
    return response["code"], response["error"]


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


async def test_undo_takes_back_what_the_last_run_did_to_files_and_redo_makes_it_again(opened, work):
    before = contents(work)
    talk = await opened(write(work / "new.txt", "new"), bash("echo more >> kept.txt; rm -f gone"), text("done"))
    await talk.run()
    after = contents(work)
    assert after == {"new.txt": "new", "kept.txt": "as it wasmore\n"}

    undone = await talk.ask("session.undo")
    assert contents(work) == before
    assert undone["restored"] == ["kept.txt", "new.txt"]
    (told,) = only(await talk.until("notice"), "notice")
    assert told["text"].startswith("undone: 2 files (kept.txt, new.txt) as before; ")

    redone = await talk.ask("session.redo")
    assert contents(work) == after
    assert redone["files"] == 2


async def test_the_model_is_told_which_files_are_as_before(opened, work):
    talk = await opened(write(work / "new.txt", "new"), text("done"), text("I see"))
    await talk.run()
    await talk.ask("session.undo")
    await talk.run("go on")
    role, (said,) = (await talk.texts())[-3]
    assert role == "user"
    assert "has undone" in said
    assert "new.txt" in said


async def test_undo_refuses_to_take_back_what_the_user_changed_since(opened, work):
    talk = await opened(bash("echo a > a.txt; echo b > b.txt"), text("done"))
    await talk.run()
    (work / "a.txt").write_text("mine")
    code, sentence = await refusal(talk, "session.undo")
    assert code == "conflict"
    assert "a.txt was changed since then, so nothing was restored" in sentence
    assert contents(work) == {"kept.txt": "as it was", "a.txt": "mine", "b.txt": "b\n"}

    undone = await talk.ask("session.undo", when_changed="keep")
    assert contents(work) == {"kept.txt": "as it was", "a.txt": "mine"}
    assert [one["path"] for one in undone["kept"]] == ["a.txt"]


async def test_a_forced_undo_restores_also_what_the_user_changed(opened, work):
    talk = await opened(bash("echo a > a.txt"), text("done"))
    await talk.run()
    (work / "a.txt").write_text("mine")
    await talk.ask("session.undo", when_changed="overwrite")
    assert contents(work) == {"kept.txt": "as it was"}


async def test_undo_is_a_slash_command_with_flags(opened, work):
    talk = await opened(bash("echo a > a.txt"), text("done"))
    await talk.run()
    (work / "a.txt").write_text("mine")
    assert "--force" in (await refusal(talk, "run_command", name="/undo"))[1]
    assert "--keep" in (await refusal(talk, "run_command", name="/undo", args="nonsense"))[1]
    answer = await talk.ask("run_command", name="/undo", args="--force")
    assert answer["action"] == "display"
    assert "a.txt" in answer["text"]
    assert "nothing to undo" in (await refusal(talk, "run_command", name="/undo"))[1]


async def test_undo_is_refused_while_a_run_is_in_progress(opened, work):
    talk = await opened(bash("sleep 30"), text("done"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_call")
    assert await talk.refused("session.undo") == "busy"
    await talk.ask("abort")
    await talk.until("done")


async def test_a_rewind_with_files_returns_both_to_the_message(opened, work):
    one, two, three = (write(work / name, name) for name in ("one", "two", "three"))
    talk = await opened(one, text("1"), two, text("2"), three, text("3"))
    for prompt in ("a", "b", "c"):
        await talk.run(prompt)
    seqs = [message["seq"] for message in (await talk.ask("session.history"))["messages"]]
    first_answer = seqs[3]
    back = await talk.ask("session.rewind", seq=first_answer, files=True)
    assert back["restored"] == ["three", "two"]
    assert contents(work) == {"kept.txt": "as it was", "one": "one"}
    assert [said for _, said in await talk.texts()][-1] == ["1"]


async def test_everything_since_a_message_can_be_undone_without_a_rewind(opened, work):
    talk = await opened(write(work / "one", "one"), text("1"), write(work / "two", "two"), text("2"))
    await talk.run("a")
    await talk.run("b")
    undone = await talk.ask("session.undo", after=0)
    assert undone["restored"] == ["one", "two"]
    assert contents(work) == {"kept.txt": "as it was"}


async def test_a_rewind_with_files_changes_neither_if_the_user_changed_a_file(opened, work):
    talk = await opened(text("0"), write(work / "one", "one"), text("1"))
    await talk.run("a")
    await talk.run("b")
    (work / "one").write_text("mine")
    before = await talk.texts()
    seq = (await talk.ask("session.history"))["messages"][1]["seq"]
    assert await talk.refused("session.rewind", seq=seq, files=True) == "conflict"
    assert await talk.texts() == before
    assert (work / "one").read_text() == "mine"


async def test_a_step_is_recorded_once_whatever_the_number_of_its_calls(opened, work, house):
    both = calls(CallPart("bash", {"command": "echo a > a"}), CallPart("bash", {"command": "echo b > b"}))
    talk = await opened(both, bash("echo c > c"), text("done"))
    await talk.run()
    found = Checkpoints(str(work), house.place.env["ZOT_HOME"], house.place.env).all()
    assert [one.kind for one in found[::-1]] == ["step", "step", "end"]


async def test_a_step_that_only_reads_is_not_recorded(opened, work, house):
    talk = await opened(calls(CallPart("read", {"path": str(work / "kept.txt")})), text("done"))
    await talk.run()
    assert not (house.place.home / "checkpoints").exists()


async def test_what_cannot_be_recorded_is_told_once_and_runs_anyway(opened, house, work):
    env = {"PATH": "/nowhere:/bin", "HOME": str(house.cwd)}
    talk = await opened(bash("echo a > a"), bash("echo b > b"), text("done"), env=env)
    found = only(await talk.run(), "notice")
    assert [one["level"] for one in found] == ["warn"]
    assert "contains your home directory" in found[0]["text"]
    assert (work / "b").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="directories are watched on Linux only")
async def test_a_directory_is_watched_until_its_last_session_leaves_memory(opened, house, work):
    answers = (bash("true"), text("done"), bash("true"), text("done"))
    talk = await opened(*answers, client=await house.connect(role="admin"))
    # The directory itself is also watched for extensions that appear in it, at a time of their own.
    (inner := work / "inner").mkdir()
    await talk.run()
    await talk.run("again")
    assert watches(inner) == 1
    await talk.client.ask("session.delete", session=talk.id)
    for thread in threading.enumerate():
        if thread.name == f"end of the watch of {work}":
            await asyncio.to_thread(thread.join)
    assert watches(inner) == 0


def watches(directory):
    """How many inotify descriptors of this process, which runs the daemon, watch `directory`."""
    found = 0
    for one in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            found += f" ino:{directory.stat().st_ino:x} " in one.read_text(encoding="ascii")
    return found


async def test_without_checkpoints_there_is_nothing_to_undo(opened, work):
    talk = await opened(text("hi"))
    await talk.run()
    assert "nothing to undo" in (await refusal(talk, "session.undo"))[1]
    assert "nothing to redo" in (await refusal(talk, "session.redo"))[1]
    assert await talk.refused("session.undo", when_changed="maybe") == "bad_request"


async def test_the_changes_of_a_turn_are_shown_with_their_lines(opened, work):
    (work / "kept.txt").write_text("1\n2\n")
    talk = await opened(
        bash("echo 3 >> kept.txt; printf 'a\\0' > data"), text("one"), write(work / "b.txt", "b"), text("two")
    )
    await talk.run("first")
    await talk.run("second")
    messages = (await talk.ask("session.history"))["messages"]
    first, second = (one["seq"] for one in messages if one["role"] == "user")
    last = await talk.ask("session.changes")
    assert last["files"] == [{"path": "b.txt", "added": 1, "removed": 0}]
    before = await talk.ask("session.changes", after=first, until=second)
    assert before["files"] == [{"path": "data"}, {"path": "kept.txt", "added": 1, "removed": 0}]
    assert "+3\n" in before["patch"]
    await talk.ask("session.undo")
    assert (await talk.ask("session.changes"))["files"] == last["files"]
    assert "no run there has changed" in (await refusal(talk, "session.changes", after=messages[-1]["seq"]))[1]
