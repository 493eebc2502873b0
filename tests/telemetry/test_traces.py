"""Traces of runs, as a real collector receives them."""

import asyncio
import json
import signal

import pytest

from tests.e2e.shop import Shop
from tests.e2e.test_sampling import opened
from zotd.core.compaction import SYSTEM
from zotd.telemetry.ids import TraceParent
from zotd.testing.script import CallPart, Cut, Gate, Refusal, ScriptedReply, TextPart, calls, text
from zotd.wire.content import Tokens


def named(spans, name):
    """The only span whose name begins so."""
    (found,) = [one for one in spans if one.name.startswith(name)]
    return found


def read(header):
    """A `traceparent` that is valid."""
    found = TraceParent.parse(header)
    assert found is not None, header
    return found


async def test_a_run_is_a_trace_of_its_requests_and_tool_calls(traced, collector, model):
    house = traced()
    (house.cwd / "a").write_text("walrus")
    usage = Tokens(input=100, output=20, cache_read=900)
    server = await model(
        ScriptedReply([CallPart("read", {"path": "a"})], usage=usage), ScriptedReply([TextPart(["It says walrus."])])
    )
    talk = await house.create("anthropic", server, model="claude-sonnet-5-5")
    await talk.run("what does a say?")
    spans = await collector.until("invoke_agent")
    run, read = named(spans, "invoke_agent zot"), named(spans, "execute_tool read")
    first, second = sorted(
        (one for one in spans if one.name == "chat claude-sonnet-5-5"), key=lambda one: one.raw.start_time_unix_nano
    )
    assert len(spans) == 4
    assert {one.trace for one in spans} == {run.trace}
    assert run.parent == b""
    assert {one.parent for one in (read, first, second)} == {run.id}
    assert not any(one.has_failed for one in spans)
    assert run.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert run.attributes["gen_ai.conversation.id"] == talk.id
    assert run.attributes["zot.run.outcome"] == "end_turn"
    assert run.attributes["gen_ai.usage.output_tokens"] == 25
    assert first.raw.kind == first.raw.SPAN_KIND_CLIENT
    assert first.attributes["gen_ai.provider.name"] == "anthropic"
    assert first.attributes["gen_ai.request.model"] == "claude-sonnet-5-5"
    assert first.attributes["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert first.attributes["gen_ai.usage.input_tokens"] == 1000
    assert first.attributes["gen_ai.usage.cache_read.input_tokens"] == 900
    assert 0 < first.attributes["gen_ai.response.time_to_first_chunk"] <= first.seconds + 0.001
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert read.attributes["gen_ai.tool.name"] == "read"
    assert first.raw.end_time_unix_nano <= read.raw.end_time_unix_nano <= second.raw.end_time_unix_nano
    assert run.raw.start_time_unix_nano <= first.raw.start_time_unix_nano
    resource = collector.resources[0]
    assert resource["service.name"] == "zot"
    assert collector.headers[0]["Content-Type"] == "application/x-protobuf"


@pytest.mark.parametrize(("vendor", "api"), [("anthropic", ""), ("openai", "chat"), ("openai", "responses")])
async def test_the_model_that_answers_is_told_apart_from_the_one_that_was_asked(
    traced, collector, model, tmp_path, vendor, api
):
    home = tmp_path / "zot"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[providers.openai]\napi = "{api}"\n' if api else "")
    house = traced()
    talk = await house.create(vendor, await model(ScriptedReply([TextPart(["hi"])], model="m-2026-11-01")), model="m")
    await talk.run()
    request = named(await collector.until("invoke_agent"), "chat m")
    assert request.attributes["gen_ai.request.model"] == "m"
    assert request.attributes["gen_ai.response.model"] == "m-2026-11-01"


async def test_a_retry_is_an_event_of_the_request(traced, collector, model):
    house = traced()
    server = await model(Refusal(529), ScriptedReply([TextPart(["ha"]), Cut()]), text("at last"))
    talk = await house.create("openai", server)
    await talk.run()
    spans = await collector.until("invoke_agent")
    request = named(spans, "chat ")
    assert [event.name for event in request.raw.events] == ["retry", "retry"]
    told = [{one.key: one.value.string_value for one in event.attributes} for event in request.raw.events]
    assert [one["error.type"] for one in told] == ["overloaded", "cut"]
    assert request.attributes["zot.request.attempts"] == 3
    assert not request.has_failed


async def test_a_run_that_fails_says_why_in_one_word(traced, collector, model):
    house = traced(ZOT_LIMITS_RETRY_PATIENCE_S="0")
    server = await model(Refusal(401))
    talk = await house.create("anthropic", server)
    await talk.run()
    spans = await collector.until("invoke_agent")
    for span in (named(spans, "chat "), named(spans, "invoke_agent")):
        assert span.has_failed
        assert span.attributes["error.type"] == "auth"
        assert span.raw.status.message == ""


async def test_an_approval_is_a_span_as_long_as_the_wait(traced, collector, model):
    house = traced()
    server = await model(calls(CallPart("bash", {"command": "exit 3"})), text("done"))
    client = await house.connect(client={"name": "ann"}, can_approve=True)
    talk = await house.create("openai", server, client, mode="ask")
    await talk.ask("prompt", message="go")
    asked = (await talk.until("approval_requested"))[-1]
    await talk.ask("approve", approval=asked["approval"], args_digest=asked["args_digest"], decision="allow")
    await talk.until("done")
    spans = await collector.until("invoke_agent")
    approval, bash = named(spans, "approval bash"), named(spans, "execute_tool bash")
    assert approval.parent == named(spans, "invoke_agent").id
    assert approval.attributes["zot.approval.decision"] == "allow"
    assert approval.raw.end_time_unix_nano <= bash.raw.start_time_unix_nano + 1_000_000  # records have milliseconds
    assert bash.attributes["error.type"] == "tool_error"
    assert b"ann" not in b"".join(collector.bodies).replace(b"channel", b"")


async def test_a_denied_call_is_a_span_that_did_not_run(traced, collector, model):
    house = traced()
    server = await model(calls(CallPart("bash", {"command": "true"})), text("done"))
    talk = await house.create("openai", server, mode="read-only")
    await talk.run()
    bash = named(await collector.until("invoke_agent"), "execute_tool bash")
    assert (bash.attributes["error.type"], bash.seconds) == ("not_run", 0)


async def test_a_command_joins_the_trace_by_its_environment(traced, collector, model):
    house = traced()
    server = await model(calls(CallPart("bash", {"command": "echo $TRACEPARENT > seen"})), text("done"))
    talk = await house.create("openai", server)
    await talk.run()
    bash = named(await collector.until("invoke_agent"), "execute_tool bash")
    seen = read((house.cwd / "seen").read_text())
    assert seen == TraceParent(int.from_bytes(bash.trace), int.from_bytes(bash.id), is_sampled=True)


async def test_a_run_joins_the_trace_of_the_program_that_its_client_belongs_to(traced, collector, model):
    house = traced()
    outer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    talk = await house.create(
        "openai", await model(text("hi")), env={"PATH": house.place.env["PATH"], "TRACEPARENT": outer}
    )
    await talk.run()
    run = named(await collector.until("invoke_agent"), "invoke_agent")
    assert (run.trace.hex(), run.parent.hex()) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


async def test_a_trace_that_the_client_s_program_does_not_record_is_not_exported(traced, collector, model):
    house = traced()
    server = await model(calls(CallPart("bash", {"command": "echo $TRACEPARENT > seen"})), text("hi"), text("hi"))
    environment = {"PATH": house.place.env["PATH"]}
    outer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    silent = await house.create("openai", server, env={**environment, "TRACEPARENT": outer})
    await silent.run()
    assert read((house.cwd / "seen").read_text()).is_sampled is False
    talk = await house.create("openai", server, env=environment)
    await talk.run()
    spans = await collector.until("invoke_agent")
    assert {one.attributes["gen_ai.conversation.id"] for one in spans} == {talk.id}


GUARDED = """
@ext.guard("tool_call")
def check(event):
    with open("asked", "a") as file:
        file.write(f"{event.traceparent}\\n")

@ext.tool
def add(call):
    found = ext.call_tool("read", {"path": "a"}).result()
    return f"{call.traceparent} {found.text}"
"""


async def test_guards_and_extensions_get_the_span_that_theirs_belong_to(traced, collector, model, results):
    house = traced()
    (house.cwd / "a").write_text("walrus")
    shop = Shop(house)
    shop.write("careful", GUARDED)
    server = await model(calls(CallPart("add", {})), text("3"))
    talk = await shop.open(server)
    await talk.run()
    spans = await collector.until("invoke_agent")
    run, add = named(spans, "invoke_agent"), named(spans, "execute_tool add")
    outer, inner = sorted(
        (one for one in spans if one.name == "guard careful tool_call"), key=lambda one: one.raw.start_time_unix_nano
    )
    assert outer.attributes["zot.guard.outcome"] == "allowed"
    assert outer.parent == run.id
    asked = (shop.installed / "careful" / "asked").read_text().split()
    assert [read(one).span_id for one in asked] == [int.from_bytes(one.id) for one in (outer, inner)]
    assert add.attributes["zot.extension"] == "careful"
    said = results(server.requests[1])[0]
    assert "walrus" in said
    assert read(said.split()[0]).span_id == int.from_bytes(add.id)
    nested = named(spans, "execute_tool read")
    assert nested.parent == add.id


async def test_a_run_that_goes_on_after_a_crash_is_linked_to_the_one_that_was_cut(traced, collector, model):
    house = traced()
    gate = asyncio.Event()
    server = await model(
        calls(CallPart("read", {"path": "a"})), ScriptedReply([TextPart(["on"]), Gate(gate)]), text("end")
    )
    local = {"provider": "ollama", "model": "m", "base_url": server.openai_url, "secrets": None}
    talk = await house.create("openai", server, **local)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    await collector.until("execute_tool")
    house.restart(signal.SIGKILL)
    talk = await house.follow(talk.id)
    cut = named(await collector.until("invoke_agent"), "invoke_agent")
    assert cut.attributes["zot.run.outcome"] == "cut"
    assert cut.has_failed
    assert named(collector.spans, "execute_tool").parent == cut.id
    gate.set()
    await talk.ask("run_command", name="continue")
    await talk.until("done")
    spans = await collector.until("invoke_agent", 2)
    resumed = spans[-1]
    assert resumed.attributes["zot.run.outcome"] == "end_turn"
    assert resumed.trace != cut.trace
    assert [(link.trace_id, link.span_id) for link in resumed.raw.links] == [(cut.trace, cut.id)]


SECRETS = ("walrus-prompt", "walrus-reply", "walrus-args", "walrus-result", "walrus-thought", "walrus-title")


def chatter():
    call = CallPart("bash", {"command": "echo walrus-result; : walrus-args"})
    return ScriptedReply([TextPart(["walrus-reply "]), call]), text("walrus-reply")


async def test_nothing_that_was_said_is_exported_by_default(traced, collector, model):
    house = traced()
    talk = await house.create("openai", await model(*chatter(), Refusal(400, "walrus-reply is refused")))
    await talk.run("walrus-prompt walrus-title")
    await talk.run("walrus-prompt")
    await collector.until("invoke_agent", 2)
    sent = b"".join(collector.bodies)
    assert b"execute_tool bash" in sent
    assert [word for word in SECRETS if word.encode() in sent] == []
    assert b"walrus" not in sent


async def test_what_was_said_is_exported_if_wanted(traced, collector, model):
    house = traced(ZOT_TELEMETRY_CONTENT="true")
    talk = await house.create("openai", await model(*chatter()))
    await talk.run("walrus-prompt")
    spans = await collector.until("invoke_agent")
    bash = named(spans, "execute_tool bash")
    assert json.loads(bash.attributes["gen_ai.tool.call.arguments"]) == {"command": "echo walrus-result; : walrus-args"}
    assert "walrus-result" in json.loads(bash.attributes["gen_ai.tool.call.result"])[0]["content"]
    first, second = sorted(
        (one for one in spans if one.name.startswith("chat")), key=lambda one: one.raw.start_time_unix_nano
    )
    (prompt,) = json.loads(first.attributes["gen_ai.input.messages"])
    assert prompt == {"role": "user", "parts": [{"type": "text", "content": "walrus-prompt"}]}
    (reply,) = json.loads(first.attributes["gen_ai.output.messages"])
    assert (reply["role"], reply["finish_reason"]) == ("assistant", "tool_call")
    (result,) = json.loads(second.attributes["gen_ai.input.messages"])
    assert (result["role"], result["parts"][0]["type"]) == ("tool", "tool_call_response")


@pytest.mark.parametrize(
    "switch", [{"OTEL_SDK_DISABLED": "true"}, {"ZOT_TELEMETRY_TRACES": "false"}, {"OTEL_TRACES_SAMPLER": "always_off"}]
)
async def test_no_trace_is_exported_when_traces_are_off(traced, collector, model, switch):
    house = traced(**switch)
    server = await model(calls(CallPart("bash", {"command": "echo -$TRACEPARENT- > seen"})), text("done"))
    talk = await house.create("openai", server)
    await talk.run()
    await asyncio.to_thread(house.daemon.end)  # the collector answers meanwhile
    assert collector.bodies == []
    assert (house.cwd / "seen").read_text().strip().endswith(("--", "-00-"))


async def test_an_early_summary_is_a_span_of_the_run_that_requested_it(traced, collector, model):
    house = traced()
    (house.cwd / "a").write_text("walrus")
    is_there = asyncio.Event()
    full, rest = Tokens(input=95_000, output=10), Tokens(input=10, output=5)

    def answer(received):
        if SYSTEM in str(received.body):
            return ScriptedReply([Gate(is_there), TextPart(["A summary."])], usage=rest)
        if not any(message["role"] == "tool" for message in received.messages):
            return ScriptedReply([CallPart("read", {"path": "a"})], usage=full)
        return ScriptedReply([TextPart(["done"])], usage=rest)

    talk = await house.create("openai", await model(answer), model="gpt-4o")
    await talk.run("read a")
    is_there.set()
    spans = await collector.until("chat", 3)
    (early,) = [one for one in spans if one.attributes.get("zot.request.purpose") == "early_summary"]
    run = named(spans, "invoke_agent")
    assert (early.trace, early.parent) == (run.trace, run.id)
    assert early.attributes["gen_ai.usage.output_tokens"] == 5
    assert early.attributes["zot.run.step"] == 2


async def test_each_request_of_a_tool_to_the_model_is_a_span_of_the_run(traced, collector, model):
    house = traced()
    asks = calls(CallPart("srv__in_a_row"))
    talk = await opened(house, await model(asks, *[text("x")] * 20, text("done")), "greedy_server")
    await talk.run()
    spans = await collector.until("chat", 22)
    asked = [one for one in spans if one.attributes.get("zot.request.purpose") == "sampling"]
    run = named(spans, "invoke_agent")
    assert {(one.trace, one.parent) for one in asked} == {(run.trace, run.id)}
    assert len({one.id for one in asked}) == len(asked) == 20
    assert run.attributes["gen_ai.usage.output_tokens"] == 22 * 5
