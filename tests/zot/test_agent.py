"""`zot.Agent`: prompts, streams, failures."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import nullcontext

import pytest

import zot
from zot import Agent, AgentBusyError, AgentError, Image, OptionError, RunError, RunStoppedError
from zotd.testing.script import CallPart, Hang, Refusal, ScriptedReply, TextPart, calls, text
from zotd.wire import events

DOT = b"\x89PNG\r\n\x1a\n"


async def test_a_run_returns_text_calls_usage_and_messages(agent, model, place):
    (place.cwd / "a").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a"})), text("It says ", "walrus."))
    result = await agent(server).run("what does a say?")
    assert (result.text, result.output, result.stop) == ("It says walrus.", "It says walrus.", "end_turn")
    assert (result.usage.input, result.usage.output) == (20, 10)
    (call,) = result.calls
    assert (call.name, call.args, call.is_error) == ("read", {"path": "a"}, False)
    assert "walrus" in call.text
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_conversation_goes_on_with_and_without_a_block(agent, model):
    server = await model(*(text(str(number)) for number in range(4)))
    alone = agent(server)
    await alone.run("first")
    async with alone:
        await alone.run("second")
        await alone.run("third")
    result = await alone.run("fourth")
    assert [str(part["content"]) for part in server.requests[-1].messages if part["role"] == "assistant"] == [
        "0",
        "1",
        "2",
    ]
    assert len(result.messages) == 8
    assert result.usage.input == 10


async def test_a_conversation_is_resumed_from_its_messages(agent, model, place):
    (place.cwd / "a").write_text("walrus")
    server = await model(calls(CallPart("read", {"path": "a"})), text("one"), text("two"))
    result = await agent(server).run("first")
    again = await agent(server, resume=result.messages).run("second")
    assert again.messages[:4] == result.messages
    assert "walrus" in str(server.requests[-1].messages)


async def test_a_stream_has_the_events_of_the_run(agent, model):
    server = await model(text("a", "b"))
    found = [event async for event in agent(server).stream("go")]
    assert isinstance(found[0], events.UserMessage)
    assert isinstance(found[-1], events.Done)
    assert [event.delta for event in found if isinstance(event, events.TextDelta)] == ["a", "b"]


async def test_a_run_that_fails_raises_with_what_there_is(agent, model):
    server = await model(calls(CallPart("bash", {"command": "echo hi"})), Refusal(400, "no such thing"))
    with pytest.raises(RunError, match="no such thing") as caught:
        await agent(server).run("go")
    assert [call.name for call in caught.value.result.calls] == ["bash"]
    assert caught.value.result.usage.input == 10


async def test_ten_agents_answer_at_once(agent, model):
    server = await model(*(text("done") for _ in range(10)))
    async with asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(agent(server).run(f"question {number}")) for number in range(10)]
    assert [run.result().text for run in runs] == ["done"] * 10


async def test_an_agent_answers_one_prompt_at_a_time(agent, model):
    server = await model(ScriptedReply([TextPart(["a"]), Hang()]), text("later"))
    async with agent(server) as one, one.stream("go") as stream:
        while not isinstance(await anext(stream), events.TextDelta):
            pass
        with pytest.raises(AgentBusyError, match="answering another prompt"):
            await one.run("too early")
        await stream.aclose()
        assert (await one.run("now")).text == "later"


async def test_a_loop_that_was_left_is_aborted_and_the_next_prompt_waits_for_that(agent, model, place):
    os.mkfifo(place.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; cat go"})), text("later"))
    async with agent(server) as one:
        async for event in one.stream("go"):
            if isinstance(event, events.ToolProgress):
                break
        assert (await one.run("go on")).text == "later"


@pytest.mark.parametrize("kept", [True, False])
async def test_an_aborted_run_raises(agent, model, kept):
    server = await model(ScriptedReply([TextPart(["a"]), Hang()]))
    one = agent(server)

    async def stopped_while_it_writes():
        async for event in one.stream("go"):
            if isinstance(event, events.TextDelta):
                one.abort()

    async with one if kept else nullcontext():
        with pytest.raises(RunStoppedError, match="aborted") as caught:
            await stopped_while_it_writes()
    assert caught.value.result.stop == "aborted"


async def test_cancelling_a_run_ends_its_command(agent, model, place):
    os.mkfifo(place.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo $$ > pid; cat go"})))
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(agent(server).run("go"))
        # Opened as soon as the command opens it, too.
        with await asyncio.to_thread(open, place.cwd / "go", "wb", buffering=0):
            pid = int((place.cwd / "pid").read_text())
            run.cancel()
            await asyncio.wait([run])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_without_asyncio_runs_and_streams(agent, place):
    with subprocess.Popen(
        [sys.executable, "-m", "zotd.testing.model_server", "--reply", "hello"], stdout=subprocess.PIPE, text=True
    ) as process:

        class Server:
            openai_url = json.loads(next(iter(process.stdout or ())))["url"] + "/v1"

        one = agent(Server)
        assert one.run_sync("first").text == "hello"
        deltas = [event.delta for event in one.stream_sync("second") if isinstance(event, events.TextDelta)]
        assert "".join(deltas) == "hello"
        assert len(one.messages) == 4
        next(one.stream_sync("third"))
        assert one.run_sync("fourth").text == "hello"
        process.terminate()


async def test_the_blocking_methods_are_refused_inside_of_a_loop(agent, model):
    with pytest.raises(AgentError, match=r"await agent\.run"):
        agent(await model()).run_sync("go")


async def test_an_open_agent_is_refused_in_another_loop(agent, model):
    async with agent(await model(text("hi"))) as one:
        found = []

        def use():
            with pytest.raises(AgentError, match="another event loop") as caught:
                asyncio.run(one.run("go"))
            found.append(caught)

        await asyncio.to_thread(use)
        assert found
        assert (await one.run("go")).text == "hi"


def test_an_agent_goes_on_after_a_fork_unless_it_is_open(place):
    program = """
import asyncio, os, sys
from zot import Agent, AgentError

def in_child(work):
    if (pid := os.fork()) == 0:
        try:
            print(work(), flush=True)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

def refused():
    try:
        return asyncio.run(agent.run("go")).text
    except AgentError as error:
        return error

async def forked_while_it_is_open():
    async with agent:
        in_child(refused)

agent = Agent(provider="openai", base_url=sys.argv[1], api_key="sk-x")
agent.run_sync("first")
in_child(lambda: agent.run_sync("second").text)
asyncio.run(forked_while_it_is_open())
"""
    with subprocess.Popen(
        [sys.executable, "-m", "zotd.testing.model_server", "--reply", "hello"], stdout=subprocess.PIPE, text=True
    ) as process:
        url = json.loads(next(iter(process.stdout or ())))["url"] + "/v1"
        ran = subprocess.run(
            [sys.executable, "-c", program, url],
            cwd=place.cwd,
            env=place.env,
            capture_output=True,
            text=True,
            check=False,
        )
        process.terminate()
    assert (ran.stdout, ran.stderr) == (
        "hello\nthis agent was opened before the process forked; make another one in the new process\n",
        "",
    )


async def test_an_image_is_sent_along(agent, model):
    server = await model(text("a dot"))
    await agent(server, model="gpt-5").run("what is this?", images=[Image.from_bytes(DOT)])
    assert "image_url" in str(server.requests[0].messages)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"modelname": "x"}, 'unknown keyword argument "modelname"; did you mean "model"?'),
        ({"mode": "asking"}, 'unknown mode "asking"; did you mean "ask"?'),
        ({"reasoning": "hihg"}, 'unknown reasoning "hihg"; did you mean "high"?'),
        ({"builtin_tools": ["baash"]}, 'unknown built-in tool "baash"; did you mean "bash"?'),
        ({"max_steps": "5"}, "expected `int | null`, got `str` in `max_steps`"),
        ({"fallback": "gpt-5"}, "fallback must be a list of texts, not 'gpt-5'"),
        ({"resume": ["hi"]}, "resume must be the messages of an earlier result, not 'hi'"),
        ({"mode": 1}, 'unknown mode "1"; there are yolo, workspace, ask, read-only'),
    ],
)
def test_a_wrong_option_is_one_sentence_before_anything_starts(options, sentence):
    with pytest.raises(OptionError) as caught:
        Agent(**options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("prompt", "options", "sentence"),
    [
        (5, {}, "the prompt must be text, not 5"),
        ("go", {"images": [b"x"]}, "images must be made with Image.from_bytes(data); this is b'x'"),
        ("go", {"tries": "3", "output_type": int}, "tries must be a whole number from 1 on, not '3'"),
        ("go", {"tries": 0, "output_type": int}, "tries must be a whole number from 1 on, not 0"),
    ],
)
async def test_a_wrong_prompt_is_one_sentence_before_anything_starts(prompt, options, sentence):
    with pytest.raises(OptionError) as caught:
        await Agent().run(prompt, **options)
    assert str(caught.value) == sentence


async def test_an_unknown_model_is_refused_with_the_nearest(place):
    wrong = Agent(provider="openai", model="gpt-5-mni", api_key="sk-x", cwd=place.cwd, env=place.env)
    with pytest.raises(
        OptionError, match=r'unknown model "gpt-5-mni" \(provider openai\); did you mean "gpt-5-mini"\?'
    ):
        await wrong.run("hi")


async def test_a_missing_directory_and_a_missing_key_are_one_sentence(place):
    with pytest.raises(AgentError, match="nowhere"):
        await Agent(provider="openai", api_key="sk-x", cwd=place.cwd / "nowhere", env=place.env).run("hi")
    with pytest.raises(AgentError, match="OPENAI_API_KEY"):
        await Agent(provider="openai", cwd=place.cwd, env=place.env).run("hi")


def test_every_public_name_is_there():
    assert [name for name in zot.__all__ if not hasattr(zot, name)] == []
