"""Agents of others that are cancelled, die, hang or talk nonsense: `zotd.testing.odd_agent` does all of it."""

import signal

import pytest

from tests.e2e.odd import asked_by, ended, odd_env, odd_processes, opener, saw

pytestmark = pytest.mark.usefixtures("odd_is_known")


# --- cancel, crash, resume --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["wait", "busy"])
async def test_an_abort_ends_its_turn_and_the_next_one_begins(odd, act):
    talk = await odd()
    await talk.ask("prompt", message=f"started {act}:/nowhere never")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    await talk.run("again")
    assert (await talk.texts())[-1] == ("assistant", ["again "])


async def test_an_abort_ends_its_question(odd, house):
    talk = await odd(mode="ask")
    await asked_by(talk, f"ask:{house.cwd}/made end")
    await talk.ask("abort")
    events = await talk.until("done")
    assert saw(events, "approval_resolved")[0]["decision"] == "cancelled"
    assert not (house.cwd / "made").exists()


async def test_an_agent_that_ignores_a_cancel_is_ended(odd, monkeypatch):
    monkeypatch.setattr("zotd.adapters.agent.CANCEL_S", 0.1)
    talk = await odd(stores=True)
    await talk.ask("prompt", message="started hang")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    await talk.run("recall")
    assert (await talk.texts())[-1] == ("assistant", ["started hang"])


async def test_a_run_that_ends_early_cancels_its_turn(odd, house):
    talk = await odd(max_steps=1)
    await talk.run(f"write:{house.cwd}/a wait:/nowhere write:{house.cwd}/b")
    await talk.run("again")
    assert (await talk.texts())[-1] == ("assistant", ["again "])
    assert [path.name for path in house.cwd.iterdir()] == ["a"]


async def test_a_crash_ends_the_run_and_the_next_prompt_takes_its_session_up(odd):
    talk = await odd(stores=True)
    await talk.run("remember this")
    assert ended(await talk.run("oh die")) == "Odd exited with code 7: fatal: out of ideas"
    await talk.run("recall")
    assert (await talk.texts())[-1] == ("assistant", ["remember this | oh die"])


async def test_a_call_that_a_crash_cuts_has_an_unknown_outcome(odd):
    talk = await odd()
    await talk.ask("prompt", message="busy:/nowhere")
    await talk.until("tool_start")
    (agent,) = odd_processes()
    agent.kill()
    result = saw(await talk.until("done"), "tool_result")[0]
    assert result["content"][0]["text"].startswith("interrupted, outcome unknown")


@pytest.mark.parametrize("behaves", ["", "forgetful"])
async def test_an_agent_without_memory_begins_anew_and_people_are_told(odd, behaves):
    talk = await odd(behaves=behaves, stores=behaves == "forgetful")
    await talk.run("remember this")
    await talk.run("die")
    events = await talk.run("recall")
    assert saw(events, "notice")[-1]["text"] == "Odd begins anew: it knows nothing of what was said before"
    assert (await talk.texts())[-1] == ("assistant", ["nothing"])


async def test_a_cut_turn_is_not_sent_again(odd):
    talk = await odd(stores=True)
    await talk.run("die")
    await talk.ask("run_command", name="continue")
    assert "is not sent twice" in ended(await talk.until("done"))


async def test_clear_has_it_begin_anew(odd):
    talk = await odd(stores=True)
    await talk.run("remember this")
    await talk.ask("clear")
    await talk.run("die")
    await talk.run("recall")
    assert (await talk.texts())[-1] == ("assistant", ["die"])


# --- agents that misbehave --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaves", "sentence"),
    [
        ("hang", "Odd was not ready within 0.3 s; it was ended"),
        ("future", "Odd speaks version 99 of ACP, and zot speaks 1; update the older one"),
        ("junk", "Odd does not speak ACP: it has printed 100 lines that are no messages"),
        ("dead", "Odd exited with code 3: no such model: odd-1"),
        ("login", "Odd wants you to log in; then send the prompt again"),
    ],
)
async def test_an_agent_that_cannot_begin_is_told_in_a_sentence(odd, house, behaves, sentence):
    if behaves == "hang":
        config = house.place.home / "config.toml"
        config.write_text(config.read_text().replace("start_s = 40", "start_s = 0.3"))
        await (await house.connect(role="admin")).ask("daemon.reload")
    talk = await odd(behaves=behaves)
    assert ended(await talk.run("hello")) == sentence


async def test_an_agent_that_is_not_installed_is_told_with_how_to_install_it(odd):
    talk = await odd(agent="vibe")
    sentence = ended(await talk.run("hello"))
    assert (
        sentence
        == "Mistral Vibe needs vibe-acp, which is not on the PATH; install it with: uv tool install mistral-vibe"
    )


async def test_a_prompt_that_could_not_be_sent_is_sent_by_continue(odd, house):
    config = house.place.home / "config.toml"
    right = config.read_text()
    config.write_text(right.replace("zotd.testing.odd_agent", "zotd.testing.none"))
    await (await house.connect(role="admin")).ask("daemon.reload")
    talk = await odd()
    assert "No module named" in ended(await talk.run("hello"))
    config.write_text(right)
    await (await house.connect(role="admin")).ask("daemon.reload")
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    assert (await talk.texts())[-1] == ("assistant", ["hello "])


async def test_what_it_says_of_other_sessions_is_not_heard(odd):
    talk = await odd()
    await talk.run("stranger")
    assert await talk.texts() == [("user", ["stranger"]), ("assistant", ["refused"])]


async def test_files_are_not_offered_to_it(odd):
    talk = await odd()
    await talk.run("offered")
    assert (await talk.texts())[-1] == ("assistant", ["unoffered"])


async def test_what_no_version_of_the_protocol_has_is_skipped(odd):
    talk = await odd()
    await talk.run("odd still twice here")
    await talk.run("and again")
    assert (await talk.texts())[-1] == ("assistant", ["and again "])


async def test_a_flood_ends_the_agent_and_not_the_daemon(odd, monkeypatch):
    monkeypatch.setattr("zotd.adapters.turn.HELD_CHARS", 100_000)
    talk = await odd()
    assert ended(await talk.run("flood")).startswith("Odd said more than")
    await talk.run("hello")
    assert (await talk.texts())[-1] == ("assistant", ["hello "])


# --- the daemon dies --------------------------------------------------------------------------------------------------


async def test_a_question_ends_with_the_daemon_that_asked_it(process):
    talk = await opener(process)(mode="ask")
    await asked_by(talk, f"ask:{process.cwd}/made")
    process.restart(signal.SIGKILL)
    talk = await process.follow(talk.id)
    assert talk.snapshot["approvals"] == []
    assert await talk.state() == "held"
    assert not (process.cwd / "made").exists()


async def test_a_killed_daemon_ends_the_agent_and_sends_nothing_twice(process):
    how = {"behaves": "stubborn", "stores": True}
    talk = await opener(process)(**how)
    await talk.run("remember this")
    await talk.ask("prompt", message="busy:/nowhere")
    await talk.until("tool_start")
    (agent,) = odd_processes(process.daemon.pid)
    process.restart(signal.SIGKILL)
    agent.wait(timeout=30)
    client = await process.connect()
    talk = await process.follow(talk.id, client)
    await client.ask("session.configure", session=talk.id, env=odd_env(process, **how))
    assert await talk.state() == "held"
    await talk.run("recall")
    assert [text for _, text in await talk.texts()] == [
        ["remember this"],
        ["remember this "],
        ["busy:/nowhere"],
        ["execute"],
        [["interrupted, outcome unknown"]],
        ["recall"],
        ["remember this | busy:/nowhere"],
    ]
