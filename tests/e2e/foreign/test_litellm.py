"""litellm's proxy between the daemon and the scripted model: what it makes of requests, replies and errors."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, only
from tests.e2e.foreign.conftest import command
from tests.e2e.foreign.litellm_proxy import KEY
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import (
    CallPart,
    Cut,
    Gate,
    Hang,
    Refusal,
    ScriptedReply,
    TextPart,
    ThinkingPart,
    calls,
    text,
)
from zotd.wire.content import Tokens

PROXY_S = 240
"""For a test and the start of the proxy, which the first one waits for: 6 s on an idle machine, a minute on one that
runs ten times as many processes as it has cores."""

pytestmark = pytest.mark.timeout(PROXY_S)

PICTURE = {"mime_type": "image/png", "data": "iVBORw=="}

READ = CallPart("read", {"path": "a.txt"})


def configure(home, proxy):
    """What a person writes: one proxy, in each of the three APIs that it serves."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(
        f"""
        [providers.litellm]
        label = "LiteLLM"
        base_url = "{proxy.url}/v1"
        key_env = ["LITELLM_KEY"]
        prices = "openai"

        [providers.litellm-responses]
        base_url = "{proxy.url}/v1"
        api = "responses"
        key_env = ["LITELLM_KEY"]
        prices = "openai"

        [providers.litellm-messages]
        base_url = "{proxy.url}"
        dialect = "anthropic"
        key_env = ["LITELLM_KEY"]
        prices = "anthropic"
        """
    )


MODELS = {"litellm": "gpt-4o", "litellm-responses": "gpt-5", "litellm-messages": "claude-sonnet-4-5"}
"""A model for each API."""


OF_OPENAI = Refusal(400, "This model's maximum context length is 128000 tokens.", kind="context_length_exceeded")

TOO_LONG = {
    "litellm": OF_OPENAI,
    "litellm-responses": OF_OPENAI,
    "litellm-messages": Refusal(400, "prompt is too long: 201234 tokens > 200000 maximum"),
}
"""A conversation that is too long, in the words of the vendor behind each API."""


@pytest.fixture(params=MODELS)
def api(request):
    """Each of the three APIs, one after the other."""
    return request.param


@pytest.fixture
async def upstream(proxy):
    """`await upstream(answer, ...)`: the scripted model behind the proxy."""
    proxy.check()
    async with AsyncExitStack() as stack:

        async def upstream(*answers):
            return await stack.enter_async_context(ModelServer(answers, port=proxy.upstream_port))

        yield upstream


@pytest.fixture
async def home(tmp_path, monkeypatch, proxy):
    """A daemon in this loop that knows the proxy."""
    async with AsyncExitStack() as stack:
        configure(tmp_path / "zot", proxy)
        place = await stack.enter_async_context(serving(tmp_path))
        monkeypatch.setenv("HOME", place.env["HOME"])
        (place.cwd / "a.txt").write_text("walrus\n")
        (place.cwd / "b.txt").write_text("carpenter\n")
        yield House(stack, place)


async def begin(house, api, **options):
    return await house.create(api, None, **{"model": MODELS[api], "secrets": {"api_key": KEY}} | options)


def said(events):
    return "".join(event["delta"] for event in only(events, "text_delta"))


async def test_an_answer_comes_through_the_proxy_while_it_is_written(home, upstream, api):
    gate = Gate(asyncio.Event())
    await upstream(ScriptedReply([TextPart(["Hello"]), gate, TextPart([" there."])]))
    talk = await begin(home, api)
    await talk.ask("prompt", message="go")
    first = await talk.until("text_delta")
    gate.event.set()
    assert said([*first, *await talk.until("done")]) == "Hello there."


async def test_a_tool_call_gets_its_result(home, upstream, api, look):
    server = await upstream(calls(READ, before="I look."), text("It says walrus."))
    talk = await begin(home, api)
    events = await talk.run()
    assert [(call["name"], call["args"]) for call in only(events, "tool_call")] == [("read", {"path": "a.txt"})]
    assert "walrus" in json.dumps(server.requests[1].messages)
    assert (await talk.texts())[-1] == ("assistant", ["It says walrus."])


async def test_two_calls_of_one_reply_both_get_their_results(home, upstream, api):
    server = await upstream(calls(READ, CallPart("read", {"path": "b.txt"})), text("Both."))
    talk = await begin(home, api)
    events = await talk.run()
    assert [call["args"]["path"] for call in only(events, "tool_call")] == ["a.txt", "b.txt"]
    sent = json.dumps(server.requests[1].messages)
    assert "walrus" in sent
    assert "carpenter" in sent


async def test_an_image_reaches_the_model(home, upstream, api):
    server = await upstream(text("A cat."))
    talk = await begin(home, api)
    events = await talk.run(images=[PICTURE])
    assert said(events) == "A cat."
    assert PICTURE["data"] in json.dumps(server.requests[0].messages)


async def test_reasoning_is_shown_and_goes_back_with_the_results_of_tools(home, upstream):
    answer = ScriptedReply([ThinkingPart(["Hm 2."], "e_2"), TextPart(["Yes."])])
    server = await upstream(ScriptedReply([ThinkingPart(["Hm 1."], "e_1"), READ]), answer)
    talk = await begin(home, "litellm-responses", reasoning="high")
    events = await talk.run()
    assert [event["delta"] for event in only(events, "thinking_delta")] == ["Hm 1.", "Hm 2."]
    assert server.requests[0].body["reasoning"]["effort"] == "high"
    assert [one["encrypted_content"] for one in server.requests[1].messages if one.get("type") == "reasoning"] == [
        "e_1"
    ]
    assert said(events) == "Yes."


async def test_signed_thinking_goes_back_through_the_messages_endpoint(home, upstream):
    server = await upstream(ScriptedReply([ThinkingPart(["Hm."], "signed"), READ]), text("Yes."))
    talk = await begin(home, "litellm-messages", reasoning="high")
    events = await talk.run()
    assert [event["delta"] for event in only(events, "thinking_delta")] == ["Hm."]
    assert '"signature": "signed"' in json.dumps(server.requests[1].messages)


async def test_claude_behind_chat_completions_thinks_calls_and_answers(home, upstream):
    server = await upstream(ScriptedReply([ThinkingPart(["Hm."], "signed"), READ]), text("Yes."))
    talk = await begin(home, "litellm", model="claude-sonnet-4-5", reasoning="high")
    events = await talk.run()
    assert not only(events, "error"), events
    assert [event["delta"] for event in only(events, "thinking_delta")] == ["Hm."]
    assert said(events) == "Yes."
    assert server.requests[0].path == "/v1/messages"


async def test_tokens_and_their_price_are_those_of_the_vendor(home, upstream, api):
    tokens = Tokens(input=1000, output=100, cache_read=5000)
    await upstream(ScriptedReply([TextPart(["Yes."])], usage=tokens))
    talk = await begin(home, api)
    usage = only(await talk.run(), "usage")[-1]
    assert (usage["input"], usage["cache_read"], usage["output"]) == (1000, 5000, 100)
    assert usage["cost_usd"] > 0


async def test_a_wrong_key_is_told_as_one(home, upstream, api):
    server = await upstream()
    talk = await begin(home, api, secrets={"api_key": "sk-wrong"})
    events = await talk.run()
    (error,) = only(events, "error")
    assert "check the API key" in error["message"]
    assert not only(events, "retry")
    assert server.requests == []


async def test_a_model_that_the_proxy_does_not_have_is_told_as_one(home, upstream, api):
    await upstream()
    talk = await begin(home, api, model="nobody-1")
    events = await talk.run()
    (error,) = only(events, "error")
    assert "check the model's name" in error["message"]
    assert not only(events, "retry")


async def test_a_rate_limit_of_the_vendor_is_waited_out(home, upstream, api):
    server = await upstream(Refusal(429, "slow down", headers={"retry-after": "0"}), text("Yes."))
    talk = await begin(home, api)
    events = await talk.run()
    (retry,) = only(events, "retry")
    assert retry["brief"] == "HTTP 429"
    assert said(events) == "Yes."
    assert len(server.requests) == 2


async def test_a_vendor_that_dies_in_mid_stream_is_asked_again(home, upstream, api):
    gate = Gate(asyncio.Event())
    server = await upstream(ScriptedReply([TextPart(["Once"]), gate, Cut()]), text("Yes."))
    talk = await begin(home, api)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    gate.event.set()
    events = await talk.until("done")
    (retry,) = only(events, "retry")
    assert retry["brief"] == "the reply was cut off"
    assert (await talk.texts())[-1] == ("assistant", ["Yes."])
    assert len(server.requests) == 2


async def test_a_conversation_that_is_too_long_is_compacted(home, upstream, api):
    await upstream(text("one"), text("two"), text("three"), TOO_LONG[api], text("They counted."), text("four"))
    talk = await begin(home, api)
    for word in ("a", "b", "c"):
        await talk.run(word)
    events = await talk.run("d")
    assert [event["summary"] for event in only(events, "compact_done")] == ["They counted."]
    assert said(events).endswith("four")


async def test_an_abort_in_mid_stream_ends_the_run_and_the_next_prompt_works(home, upstream, api):
    await upstream(ScriptedReply([TextPart(["Once"]), Hang()]), text("Yes."))
    talk = await begin(home, api)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    assert said(await talk.run()) == "Yes."


async def test_a_second_client_comes_in_mid_stream_and_sees_the_rest(home, upstream, api):
    gate = Gate(asyncio.Event())
    await upstream(ScriptedReply([TextPart(["Once"]), gate, TextPart([" upon"])]))
    talk = await begin(home, api)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    second = await home.follow(talk.id)
    gate.event.set()
    (message,) = only(await second.until("done"), "assistant_message")
    assert "".join(block["text"] for block in message["content"]) == "Once upon"


async def test_a_killed_daemon_goes_on_where_it_was(tmp_path, proxy, upstream, api):
    server = await upstream(calls(READ), ScriptedReply([TextPart(["Once"]), Hang()]), text("Yes."))
    configure(tmp_path / "zot", proxy)
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"LITELLM_KEY": KEY}))
        house = House(stack, daemon.place, daemon)
        (house.cwd / "a.txt").write_text("walrus\n")
        talk = await begin(house, api, secrets=None)
        await talk.ask("prompt", message="go")
        await talk.until("text_delta")
        house.restart(signal.SIGKILL)
        talk = await house.follow(talk.id)
        assert (await talk.ask("run_command", name="continue"))["started"] is True
        assert not only(await talk.until("done"), "error")
        assert (await talk.texts())[-1] == ("assistant", ["Yes."])
    assert len(server.requests) == 3
    assert "walrus" in json.dumps(server.requests[2].messages)


async def test_zot_p_prints_the_answer_with_the_key_of_the_shell(tmp_path, proxy, upstream):
    await upstream(text("Hello."))
    configure(tmp_path / "zot", proxy)
    with DaemonProcess(tmp_path, {"LITELLM_KEY": KEY}) as daemon:
        where = ["--provider", "litellm", "--model", "gpt-4o"]
        ran = await asyncio.to_thread(command, daemon.place, "zotd.cli", "-p", *where, "go")
    assert (ran.returncode, ran.stdout.strip()) == (0, "Hello."), ran.stderr


async def test_models_check_says_that_everything_works(tmp_path, proxy, upstream):
    count, call = ScriptedReply([TextPart(["1 2 ", "3 4"])]), calls(CallPart("report", {"word": "walrus"}))
    await upstream(count, call, text("Red."), ScriptedReply([ThinkingPart(["Hm."], "e"), TextPart(["391"])]))
    configure(tmp_path / "zot", proxy)
    with DaemonProcess(tmp_path, {"LITELLM_KEY": KEY}) as daemon:
        asked = ["litellm-responses/gpt-5", "--only", "stream,tools,images,reasoning", "--json"]
        ran = await asyncio.to_thread(command, daemon.place, "zotctl", "models", "check", *asked)
    (model,) = json.loads(ran.stdout)["models"]
    assert {probe["probe"]: probe["outcome"] for probe in model["probes"]} == dict.fromkeys(
        ("stream", "tools", "images", "reasoning"), "yes"
    ), ran.stdout
