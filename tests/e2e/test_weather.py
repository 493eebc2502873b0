"""A run outlives an outage of its model: it waits, says so, and can be told to try now or to stop."""

import signal

import pytest

from zotd.testing.script import CallPart, Cut, Refusal, ScriptedReply, StreamError, TextPart, calls, text

LONG = {"retry-after": "20"}
"""A pause that no test waits for: what ends it is what the test is about."""


@pytest.fixture
async def paused(house, model):
    """A session whose run waits for the model, and the model."""
    server = await model(Refusal(529, "no room", headers=LONG), text("at last"))
    talk = await house.create("anthropic", server)
    await talk.ask("prompt", message="go")
    await talk.until("retry")
    return talk, server


async def test_a_client_that_comes_later_sees_that_the_run_waits_and_why(house, paused):
    talk, _ = paused
    late = await house.follow(talk.id)
    waiting = late.snapshot["run"]["waiting"]
    assert (waiting["failures"], waiting["brief"]) == (1, "HTTP 529")
    assert "no room" in waiting["reason"]
    assert 0 < waiting["next_s"] <= 20
    assert late.snapshot["session"]["waiting"]["brief"] == "HTTP 529"


async def test_the_list_of_sessions_says_that_a_run_waits_and_why(house, paused):
    talk, _ = paused
    client = await house.connect()
    [session] = (await client.ask("session.list"))["sessions"]
    assert (session["id"], session["state"], session["waiting"]["brief"]) == (talk.id, "running", "HTTP 529")


async def test_retry_ends_the_pause_at_once(paused, look):
    talk, server = paused
    await talk.ask("retry")
    events = await talk.until("done")
    assert look.words(look.only(events, "assistant_message")[0]["content"]) == ["at last"]
    assert len(server.requests) == 2


async def test_retry_without_a_pause_is_refused(house, model):
    talk = await house.create("anthropic", await model())
    assert await talk.refused("retry") == "conflict"


async def test_abort_ends_the_pause_at_once(paused, look):
    talk, server = paused
    await talk.ask("abort")
    events = await talk.until("done")
    assert look.only(events, "turn_end")[0]["stop"] == "aborted"
    assert len(server.requests) == 1
    assert await talk.state() == "idle"


async def test_an_overload_inside_an_answered_stream_is_waited_out(house, model, look):
    overloaded = ScriptedReply([StreamError("Overloaded", "overloaded_error")])
    server = await model(overloaded, overloaded, text("at last"))
    talk = await house.create("anthropic", server)
    events = await talk.run()
    assert len(look.only(events, "retry")) == 2
    assert look.only(events, "turn_end")[-1]["stop"] == "end_turn"
    assert not look.only(events, "interrupted")  # nothing had come of either


@pytest.mark.parametrize("kind", ["invalid_request_error", "authentication_error", "billing_error"])
async def test_a_permanent_error_inside_a_stream_ends_the_run(house, model, look, kind):
    server = await model(ScriptedReply([TextPart(["Once"]), StreamError("no", kind)]), text("later"))
    talk = await house.create("anthropic", server)
    events = await talk.run()
    assert look.only(events, "turn_end")[-1]["stop"] == "error"
    assert len(server.requests) == 1


async def test_a_call_of_a_reply_that_broke_off_runs_once_and_not_before_the_whole_reply(house, model, vendor, look):
    append = CallPart("bash", {"command": "echo ran >> ran.txt"})
    server = await model(
        ScriptedReply([append, CallPart("bash", {"command": "true"}), Cut()]),
        ScriptedReply([TextPart(["I append."]), append, Cut()]),
        calls(append),
        text("done"),
    )
    talk = await house.create(vendor, server)
    await talk.run()
    assert (house.cwd / "ran.txt").read_text() == "ran\n"
    assert len(server.requests) == 4


async def test_results_of_the_step_before_are_kept_over_an_outage(house, model, vendor, results):
    append = CallPart("bash", {"command": "echo ran | tee -a ran.txt"})
    server = await model(calls(append), *[Refusal(503, headers={"retry-after": "0.01"})] * 3, text("done"))
    talk = await house.create(vendor, server)
    await talk.run()
    assert (house.cwd / "ran.txt").read_text() == "ran\n"
    assert len(server.requests) == 5
    assert "ran" in results(server.requests[-1])[0]


async def test_a_run_that_waited_when_the_daemon_was_killed_continues_on_request(process, model, look):
    server = await model(Refusal(529, headers=LONG), text("at last"))
    talk = await process.create("anthropic", server)
    await talk.ask("prompt", message="go")
    await talk.until("retry")
    process.restart(signal.SIGKILL)
    again = await process.follow(talk.id)
    assert again.snapshot["session"]["state"] == "held"
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await again.ask("run_command", name="continue")
    events = await again.until("done")
    assert look.words(look.only(events, "assistant_message")[0]["content"]) == ["at last"]
    assert len(server.requests) == 2


async def test_a_run_that_waited_when_the_daemon_was_killed_may_go_on_by_itself(tmp_path, process, model, look):
    (tmp_path / "zot" / "config.toml").write_text('resume = "auto"\n')
    server = await model(Refusal(529, headers=LONG), text("at last"))
    talk = await process.create("ollama", None, model="m", base_url=server.openai_url, secrets=None)
    await talk.ask("prompt", message="go")
    await talk.until("retry")
    process.restart(signal.SIGKILL)
    await server.received(2)
    again = await process.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    while not (said := look.only(again.client.seen, "assistant_message")):
        await again.client.event()
    assert look.words(said[0]["content"]) == ["at last"]
    assert len(server.requests) == 2
