"""Forks of sessions that another agent runs, in a real daemon: the agent copies its own session."""

import asyncio
import os
import signal

import psutil
import pytest

from tests.e2e.odd import odd_env, odd_processes, opener, saw

pytestmark = pytest.mark.usefixtures("odd_is_known")


async def forked(talk, house, **fields):
    """The fork of a session, followed."""
    session = (await talk.ask("session.fork", **fields))["session"]
    return await house.follow(session["id"], talk.client)


async def sessions(talk):
    return [one["id"] for one in (await talk.client.ask("session.list"))["sessions"]]


async def test_the_fork_remembers_what_was_said_and_goes_its_own_way(odd, house):
    talk = await odd(behaves="fork", stores=True)
    await talk.run("remember this")
    other = await forked(talk, house)
    await talk.run("only here")
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["remember this"])
    await talk.run("recall")
    assert (await talk.texts())[-1] == ("assistant", ["remember this | only here"])


async def test_a_session_can_be_forked_when_its_agent_does_not_run(odd, house):
    talk = await odd(behaves="fork", stores=True)
    await talk.run("remember die")
    other = await forked(talk, house)
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["remember die"])


async def test_a_fork_whose_agent_dies_before_its_first_prompt_is_copied_once_more(odd, house):
    talk = await odd(behaves="fork", stores=True)
    await talk.run("remember this")
    other = await forked(talk, house)
    for agent in odd_processes():
        agent.kill()
        agent.wait(timeout=30)
    await talk.run("since then")
    events = await other.run("recall")
    assert saw(events, "notice")[-1]["text"].startswith("Odd has copied its session once more")
    assert (await other.texts())[-1] == ("assistant", ["remember this | since then"])
    await other.run("die")
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["remember this | since then | recall | die"])


async def test_a_fork_of_a_fork_remembers_the_same(odd, house):
    talk = await odd(behaves="fork", stores=True)
    await talk.run("remember this")
    other = await forked(await forked(talk, house), house)
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["remember this"])


async def test_what_was_never_said_needs_no_copy(odd, house):
    talk = await odd()
    await talk.run("hello")
    await talk.ask("clear")
    other = await forked(talk, house)
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["nothing"])


@pytest.mark.parametrize(
    ("behaves", "stores", "sentence"),
    [
        ("", True, "Odd cannot fork its session; begin a new one with: zot --agent odd"),
        ("fork", False, "Odd cannot fork its session; begin a new one with: zot --agent odd"),
        ("fork-refuses", True, "Odd refused: too large to copy; nothing was forked"),
        ("fork-same", True, "Odd has named no new session for the copy; nothing was forked"),
        ("fork-empty", True, "Odd has named no new session for the copy; nothing was forked"),
        ("fork-dies", True, "Odd exited with code 7: fatal: forks are out; nothing was forked"),
    ],
)
async def test_an_agent_that_does_not_fork_is_told_and_the_session_goes_on(odd, behaves, stores, sentence):
    talk = await odd(behaves=behaves, stores=stores)
    await talk.run("remember this")
    answer = await talk.client.answer("session.fork", session=talk.id)
    assert answer["error"] == sentence
    assert await sessions(talk) == [talk.id]
    await talk.run("again")
    assert (await talk.texts())[-1] == ("assistant", ["again "])


async def test_a_session_cannot_be_forked_at_an_earlier_message(odd):
    talk = await odd(behaves="fork", stores=True)
    seq = saw(await talk.run("one"), "user_message")[0]["seq"]
    await talk.run("two")
    answer = await talk.client.answer("session.fork", session=talk.id, seq=seq)
    assert answer["error"] == "odd forks its session only as it is now; leave out the message to fork at"


async def test_a_session_is_not_forked_while_its_agent_works(odd, house):
    talk = await odd(behaves="fork", stores=True)
    await talk.ask("prompt", message=f"begun wait:{house.cwd}/go end")
    await talk.until("text_delta")
    assert await talk.refused("session.fork") == "busy"
    (house.cwd / "go").touch()
    await talk.until("done")
    await talk.ask("session.fork")


async def test_a_daemon_that_dies_while_the_agent_copies_leaves_a_fork_that_is_copied_later(process):
    talk = await opener(process)(behaves="fork-hangs", stores=True)
    await talk.run("remember this")
    asked = process.place.folder / "store" / "asked"
    os.mkfifo(asked)
    talk.send("session.fork")
    await asyncio.to_thread(asked.read_bytes)  # until the agent has opened it
    agents = odd_processes(process.daemon.pid)
    process.restart(signal.SIGKILL)
    psutil.wait_procs(agents, timeout=30)
    talk = await process.follow(talk.id)
    (fork,) = {*await sessions(talk)} - {talk.id}
    await talk.client.ask("session.configure", session=fork, env=odd_env(process, behaves="fork", stores=True))
    other = await process.follow(fork, talk.client)
    await other.run("recall")
    assert (await other.texts())[-1] == ("assistant", ["remember this"])
