"""`Agent.attach`: the same agent on a session of a daemon."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, only
from tests.zot.test_approver import write
from zot import (
    Agent,
    AgentBusyError,
    AgentError,
    Allow,
    Deny,
    FinishedCall,
    OptionError,
    RunError,
    RunStoppedError,
    events,
)
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, Hang, Refusal, ScriptedReply, TextPart, calls, text


@pytest.fixture
async def daemon(tmp_path):
    """A daemon in a process of its own, with clients."""
    async with AsyncExitStack() as stack:
        process = stack.enter_context(DaemonProcess(tmp_path))
        yield House(stack, process.place, process)


@pytest.fixture
def attached(daemon):
    """`await attached(server, session_options, **options)`: an agent, and what another client of its session sees."""

    async def attached(server, session=None, **options):
        talk = await daemon.create("openai", server, **(session or {}))
        return Agent.attach(talk.id, env=daemon.place.env, **options), talk

    return attached


async def test_runs_are_those_of_the_session(attached, model, daemon):
    (daemon.cwd / "a").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a"})), text("It says walrus."), text("two"))
    one, talk = await attached(server)
    result = await one.run("what does a say?")
    assert (result.text, result.usage.input, [call.name for call in result.calls]) == ("It says walrus.", 20, ["read"])
    assert [role for role, _ in await talk.texts()] == ["user", "assistant", "tool", "assistant"]
    await talk.until("done")
    await talk.run("and now?")
    async with one:
        roles = [message.role for message in one.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_streams_handlers_and_types_work_as_in_this_process(attached, model):
    server = await model(text("a", "b"), text("hm"), text("3"))
    one, _ = await attached(server)
    heard = []
    one.on(events.TextDelta)(lambda event: heard.append(event.delta))
    async with one:
        found = [event async for event in one.stream("go")]
        assert isinstance(found[0], events.UserMessage)
        assert isinstance(found[-1], events.Done)
        assert "".join(heard) == "ab"
        assert (await one.run("how many?", output_type=int)).output == 3


async def test_a_session_is_found_by_its_name(attached, model, daemon):
    server = await model(text("hi"))
    await attached(server, {"name": "docs"})
    assert (await Agent.attach("docs", env=daemon.place.env).run("go")).text == "hi"
    with pytest.raises(AgentError, match="there is no session letters; `zotctl sessions` lists them"):
        await Agent.attach("letters", env=daemon.place.env).run("go")


async def test_a_fork_is_another_session_from_the_last_run_on(attached, model):
    server = await model(text("one"), text("not seen by the fork"), text("two"), text("three"))
    one, talk = await attached(server)
    heard = []
    one.on(events.AssistantMessage)(lambda event: heard.append(event.content[0].text))
    await one.run("a")
    fork = one.fork()
    await one.run("b")
    assert (await fork.run("c")).text == "two"
    assert (await fork.run("d")).text == "three"
    assert [message.content[0].text for message in fork.messages] == ["a", "one", "c", "two", "d", "three"]
    assert [said for _, said in await talk.texts()] == [["a"], ["one"], ["b"], ["not seen by the fork"]]
    assert heard == ["one", "not seen by the fork", "two", "three"]


async def test_a_fork_of_a_session_keeps_its_options(attached, model):
    one, _ = await attached(await model())
    with pytest.raises(OptionError, match="model: a fork of a session has the options of that session"):
        one.fork(model="gpt-6")
    with pytest.raises(OptionError, match="this fork was not used yet"):
        one.fork().fork()


async def test_the_program_decides_about_calls_of_the_session(attached, model, daemon):
    async def decide(name, args, context):
        return Allow({**args, "content": "seal"}) if args["path"] == "a" else Deny("only a")

    server = await model(write("a"), write("b"), text("done"))
    one, talk = await attached(server, {"mode": "ask"}, can_use_tool=decide)
    finished: list[FinishedCall] = []
    one.on(FinishedCall)(finished.append)
    result = await one.run("go")
    assert [call.is_error for call in result.calls] == [False, True]
    assert "only a" in result.calls[1].text
    assert finished == list(result.calls)
    assert [(path.name, path.read_text()) for path in daemon.cwd.iterdir()] == [("a", "seal")]
    assert [event["by"] for event in only(await talk.until("done"), "approval_resolved")] == ["zot.Agent"] * 2


async def test_another_client_may_decide_first(attached, model, daemon):
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def decide(name, args, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    one, talk = await attached(await model(write("a"), text("done")), {"mode": "ask"}, can_use_tool=decide)
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(one.run("go"))
        pending = (await talk.until("approval_requested"))[-1]
        await asked.wait()
        named = {name: pending[name] for name in ("approval", "args_digest")}
        await talk.ask("approve", **named, decision="allow")
        await cancelled.wait()
    assert run.result().text == "done"
    assert (daemon.cwd / "a").exists()


async def test_a_call_that_waits_is_decided_about_when_the_program_attaches(attached, model, daemon):
    one, talk = await attached(await model(write("a"), text("done")), {"mode": "ask"}, can_use_tool=lambda *_: Allow())
    await talk.ask("prompt", message="go")
    await talk.until("approval_requested")
    async with one:
        await talk.until("done")
    assert (daemon.cwd / "a").exists()


@pytest.mark.parametrize("way", ["cancel", "abort", "leave"])
async def test_the_end_of_a_run_is_the_end_in_the_daemon(attached, model, way):
    server = await model(ScriptedReply([TextPart(["a"]), Hang()]), text("later"))
    one, talk = await attached(server)
    async with one, asyncio.TaskGroup() as tasks:
        if way == "leave":
            async for event in one.stream("go"):
                if isinstance(event, events.TextDelta):
                    break
        else:
            run = tasks.create_task(stopped(one))
            await talk.until("text_delta")
            one.abort() if way == "abort" else run.cancel()
            await asyncio.wait([run])
        assert (await one.run("go on")).text == "later"
    ends = only(await talk.until("done"), "turn_end")
    assert [end["stop"] for end in ends] == ["aborted"]


async def stopped(one):
    with pytest.raises((RunStoppedError, asyncio.CancelledError)):
        await one.run("go")


async def test_a_session_that_is_busy_refuses_the_prompt(attached, model):
    one, talk = await attached(await model(ScriptedReply([TextPart(["a"]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    with pytest.raises(AgentBusyError, match="the session is answering another prompt"):
        await one.run("me too")
    await talk.ask("abort")
    await talk.until("done")


async def test_a_run_that_fails_raises_with_what_there_is(attached, model):
    server = await model(calls(CallPart("bash", {"command": "echo hi"})), Refusal(400, "no such thing"))
    one, _ = await attached(server)
    with pytest.raises(RunError, match="no such thing") as caught:
        await one.run("go")
    assert [call.name for call in caught.value.result.calls] == ["bash"]


async def test_a_daemon_that_dies_is_one_sentence(attached, model, daemon):
    one, talk = await attached(await model(ScriptedReply([TextPart(["a"]), Hang()])))
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(failed(one))
        await talk.until("text_delta")
        daemon.daemon.end(9)
        error = await run
    assert "zotd closed the connection" in str(error)


async def failed(one):
    with pytest.raises(AgentError) as caught:
        await one.run("go")
    return caught.value


async def test_an_unknown_session_and_an_unreachable_daemon_are_one_sentence(daemon):
    with pytest.raises(AgentError, match="s_nowhere"):
        await Agent.attach("s_nowhere", env=daemon.place.env).run("go")
    with pytest.raises(AgentError, match="a remote daemon requires a token"):
        await Agent.attach("s_1", env=daemon.place.env, host="wss://127.0.0.1:1").run("go")


async def test_a_program_without_asyncio_attaches_too(attached, model):
    one, talk = await attached(await model(text("one"), text("two")))
    assert (await asyncio.to_thread(one.run_sync, "go")).text == "one"
    streamed = await asyncio.to_thread(lambda: list(one.stream_sync("go on")))
    assert isinstance(streamed[-1], events.Done)
    assert len(await talk.texts()) == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"tools": [print]},
            "tools: this session runs in the daemon, which calls no functions of this process; give it an extension",
        ),
        ({"model": "gpt-5"}, "model: chosen when a session is created, and this one exists already"),
        ({"sokcet": "/x"}, 'unknown keyword argument "sokcet"; did you mean "socket"?'),
        ({"socket": 5}, "socket must be text, not 5"),
        ({"can_use_tool": 5}, "can_use_tool must be a function, not 5"),
    ],
)
def test_a_wrong_option_is_one_sentence(options, sentence):
    with pytest.raises(OptionError) as caught:
        Agent.attach("s_1", **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("session", "sentence"),
    [("", "session: the name is empty; `zotctl sessions` lists ids and names"), (5, "session must be text, not 5")],
)
def test_a_session_has_a_name_or_an_id(session, sentence):
    with pytest.raises(OptionError) as caught:
        Agent.attach(session)
    assert str(caught.value) == sentence


def test_guards_see_only_calls_of_this_process():
    one = Agent.attach("s_1")
    with pytest.raises(AgentError, match="guards see the calls of this process"):
        one.guard(lambda *_: None)
