"""Reasoning that only its vendor can read: it goes back with each step, unchanged, wherever a session goes meanwhile.

The scripted vendor refuses a request whose reasoning, texts, calls and results do not belong together.
"""

import json
import subprocess
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, only
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.script import CallPart, Cut, Hang, ScriptedReply, TextPart, ThinkingPart, calls, text
from zotd.wire.content import Tokens

SOL = "gpt-5.6-sol"

PICTURE = {"mime_type": "image/png", "data": "iVBORw=="}


def mulled(number, *steps):
    """A reply with encrypted reasoning of that number."""
    return ScriptedReply([ThinkingPart([f"Hm {number}."], f"e_{number}"), *steps])


READ = CallPart("read", {"path": "a.txt"})


def configure(home, server, api="responses"):
    home.mkdir(mode=0o700, exist_ok=True)
    chosen = f'api = "{api}"\n' if api else ""
    (home / "config.toml").write_text(f'[providers.openai]\nbase_url = "{server.openai_url}"\n{chosen}')
    (home / "auth.json").write_text(json.dumps({"openai": {"api_key": "sk-x"}}))
    (home / "auth.json").chmod(0o600)


@pytest.fixture
async def begin(tmp_path, monkeypatch, model):
    """`await begin(answer, ...)`: a session whose vendor is asked in the Responses API, and that vendor."""
    async with AsyncExitStack() as stack:

        async def begin(*answers, **options):
            server = await model(*answers)
            configure(tmp_path / "zot", server)
            place = await stack.enter_async_context(serving(tmp_path))
            monkeypatch.setenv("HOME", place.env["HOME"])
            (place.cwd / "a.txt").write_text("walrus\n")
            (place.cwd / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 30)
            return await talking(House(stack, place), **options), server

        yield begin


async def talking(house, **options):
    options = {"model": SOL, "reasoning": "high", "secrets": None} | options
    return await house.create("openai", None, **options)


def started(house, *arguments):
    """`zot` with these arguments, in a process of its own."""
    argv = warm.command("zotd.cli", *arguments)
    return subprocess.Popen(argv, cwd=house.cwd, env=house.place.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def encrypted(received):
    return [item["encrypted_content"] for item in received.messages if item.get("type") == "reasoning"]


def order(received):
    return [item.get("type") or item["role"] for item in received.messages]


async def test_the_command_line_reasons_with_tools_and_keeps_it_over_a_kill(tmp_path, model):
    server = await model(mulled(1, READ), ScriptedReply([Hang()]), mulled(2, TextPart(["Yes."])))
    configure(tmp_path / "zot", server)
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path))
        house = House(stack, daemon.place, daemon)
        (house.cwd / "a.txt").write_text("walrus\n")
        zot = started(house, "-p", "go", "--provider", "openai", "--model", SOL, "--reasoning", "high")
        stack.callback(zot.communicate)
        stack.callback(zot.kill)
        await server.received(2)
        daemon.end(9)
        zot.kill()
        daemon.start()
        client = await house.connect()
        (listed,) = (await client.ask("session.list"))["sessions"]
        talk = await house.follow(listed["id"], client)
        assert (await talk.ask("run_command", name="continue"))["started"] is True
        assert "Yes." in json.dumps(await talk.until("done"))
    first, before, after = server.requests
    assert {tool["name"] for tool in first.body["tools"]} >= {"read", "bash"}
    for request in (first, before, after):
        assert request.body["reasoning"] == {"effort": "high", "summary": "auto"}
        assert request.body["prompt_cache_key"] == talk.id
        assert request.body["store"] is False
    assert encrypted(before) == ["e_1"]
    assert order(before) == ["user", "reasoning", "function_call", "function_call_output"]
    assert after.body["input"] == before.body["input"]


async def test_thinking_is_shown_and_in_no_message(begin):
    talk, _ = await begin(mulled(1, TextPart(["Yes."])))
    shown = await talk.run()
    assert [event["delta"] for event in only(shown, "thinking_delta")] == ["Hm 1."]
    (message,) = only(shown, "assistant_message")
    assert message["content"] == [{"type": "text", "text": "Yes."}]
    assert "e_1" not in str(await talk.ask("get_messages")) + str(shown)


async def test_each_step_gets_the_reasoning_of_those_before_it_in_order(begin):
    two = [CallPart("read", {"path": name}) for name in ("a.txt", "b.txt")]
    talk, server = await begin(mulled(1, TextPart(["I look."]), *two), mulled(2, READ), text("Done."))
    await talk.run()
    assert order(server.requests[2]) == [
        *("user", "reasoning", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "reasoning", "function_call", "function_call_output"),
    ]
    assert encrypted(server.requests[2]) == ["e_1", "e_2"]


async def test_after_a_rewind_and_in_a_fork_the_reasoning_is_that_of_the_branch(begin):
    talk, server = await begin(*(mulled(number, TextPart([str(number)])) for number in range(1, 6)))
    await talk.run("one")
    seq = (await talk.ask("session.history"))["messages"][-1]["seq"]
    await talk.run("two")
    made = await talk.ask("session.fork", seq=seq, name="branch")
    await talk.ask("session.rewind", seq=seq)
    await talk.until("rewound")
    await talk.run("other")
    assert encrypted(server.requests[-1]) == ["e_1"]
    await talk.client.ask("attach", session=made["session"]["id"])
    await talk.client.ask("prompt", session=made["session"]["id"], message="on")
    await server.received(4)
    assert encrypted(server.requests[-1]) == ["e_1"]


async def test_another_model_gets_none_of_it_and_the_first_one_gets_it_again(begin):
    talk, server = await begin(*(mulled(number, TextPart([str(number)])) for number in range(1, 4)))
    await talk.run()
    await talk.ask("set_model", model="gpt-5.5", provider="openai")
    await talk.run()
    await talk.ask("set_model", model=SOL, provider="openai")
    await talk.run()
    assert [encrypted(request) for request in server.requests] == [[], [], ["e_1"]]


async def test_a_compaction_drops_reasoning_with_the_turns_that_it_summarises(begin):
    replies = [
        reply for number in (1, 3, 5) for reply in (mulled(number, READ), mulled(number + 1, TextPart(["Yes."])))
    ]
    talk, server = await begin(*replies, text("They read."), text("On."))
    for _ in range(3):
        await talk.run()
    await talk.ask("compact")
    await talk.until("done")
    await talk.run()
    assert encrypted(server.requests[-2]) == []
    assert encrypted(server.requests[-1]) == ["e_5", "e_6"]


async def test_a_reply_that_ran_out_of_tokens_while_it_reasoned_does_not_spoil_the_next_prompt(begin):
    talk, server = await begin(ScriptedReply([ThinkingPart(["Hm."], "e_1")], stop="length"), text("Yes."))
    await talk.run()
    assert not only(await talk.run(), "error")
    assert encrypted(server.requests[-1]) == []


async def test_a_reply_that_was_cut_behind_its_reasoning_is_asked_for_again_without_it(begin):
    talk, server = await begin(mulled(1, TextPart(["Once"]), Cut()), mulled(2, TextPart(["Yes."])), text("On."))
    await talk.run()
    await talk.run()
    assert [encrypted(request) for request in server.requests] == [[], [], ["e_2"]]


async def test_images_are_shown_to_the_model_in_prompts_and_results(begin):
    talk, server = await begin(calls(CallPart("read", {"path": "a.png"})), text("A cat."))
    await talk.run(images=[PICTURE])
    prompt, _, output = server.requests[1].messages
    shown = [part for part in prompt["content"] if part["type"] == "input_image"]
    assert [part["image_url"] for part in shown] == ["data:image/png;base64,iVBORw=="]
    assert "input_image" in [part["type"] for part in output["output"]]


async def test_a_session_that_began_in_chat_completions_goes_on(house, model):
    server = await model(calls(CallPart("bash", {"command": "true"}), before="I run it."), text("Ran."), text("Yes."))
    configure(house.place.home, server, api=None)
    person = await house.connect(role="admin")
    await person.ask("daemon.reload")
    talk = await talking(house)
    await talk.run()
    configure(house.place.home, server)
    await person.ask("daemon.reload")
    await talk.run("and?")
    assert [request.path.rpartition("/")[2] for request in server.requests] == [
        "completions",
        "completions",
        "responses",
    ]
    assert order(server.requests[2]) == [
        *("user", "assistant", "function_call", "function_call_output", "assistant", "user")
    ]


async def test_tokens_have_their_price_with_those_from_the_cache_apart(begin):
    usage = Tokens(input=1000, output=100, cache_read=5000)
    talk, _ = await begin(ScriptedReply([ThinkingPart(["Hm."]), TextPart(["Yes."])], usage=usage))
    (told,) = only(await talk.run(), "usage")
    assert told["reasoning"] == 50
    assert (told["input"], told["cache_read"], told["output"]) == (1000, 5000, 100)
    assert told["cost_usd"] > 0


@pytest.mark.parametrize(
    ("api", "name", "words"),
    [
        ("responses", "gpt-4o", "gpt-4o is not known to reason, so reasoning high has no effect"),
        ("chat", SOL, f"{SOL} reasons in Chat Completions only without tools, so reasoning high has no effect"),
        ("responses", SOL, None),
    ],
)
async def test_reasoning_that_is_not_possible_is_told_once(house, model, api, name, words):
    server = await model(*[text("Yes.")] * 3)
    configure(house.place.home, server, api=api)
    await (await house.connect(role="admin")).ask("daemon.reload")
    talk = await talking(house, model=name)
    told = [only(await talk.run(), "notice") for _ in range(2)]
    assert [len(notices) for notices in told] == [0 if words is None else 1, 0]
    if words is not None:
        assert told[0][0]["text"].startswith(words)
