"""A run whose model fails goes on with another one of another vendor, and returns when the first one is back."""

import json
import subprocess
from contextlib import AsyncExitStack
from itertools import permutations

import pytest

from tests.e2e.conftest import House, only, words
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.script import (
    CallPart,
    Cut,
    Hang,
    Refusal,
    ScriptedReply,
    StreamError,
    TextPart,
    ThinkingPart,
    calls,
    text,
)
from zotd.wire.content import Tokens

OPUS, SOL, KIMI = "claude-sonnet-4-5", "gpt-5.6-sol", "kimi-k2-thinking"

MODELS = {"anthropic": f"anthropic/{OPUS}", "responses": f"openai/{SOL}", "chat": f"moonshot/{KIMI}"}
"""A model of each dialect."""

NO_CREDIT = Refusal(429, "You exceeded your current quota", kind="insufficient_quota")
NO_MODEL = Refusal(404, "model: nope", kind="not_found_error")
BUSY = Refusal(529, "no room")

AT_ONCE = {"ZOT_LIMITS_FALLBACK_PATIENCE_S": "0"}
SHORT_REST = {**AT_ONCE, "ZOT_LIMITS_FALLBACK_REST_S": "0.000001"}
"""The own model is asked again in the next step."""


def configure(home, servers, further=""):
    """Each vendor's address and key; `servers` by dialect."""
    home.mkdir(mode=0o700, exist_ok=True)
    lines = [further]
    for dialect, server in servers.items():
        name = MODELS[dialect].partition("/")[0]
        url = server.url if dialect == "anthropic" else server.openai_url
        lines.append(f'[providers.{name}]\nbase_url = "{url}"' + ('\napi = "responses"' * (dialect == "responses")))
    (home / "config.toml").write_text("\n".join(lines) + "\n")
    keys = {label.partition("/")[0]: {"api_key": f"sk-{dialect}"} for dialect, label in MODELS.items()}
    (home / "auth.json").write_text(json.dumps(keys))
    (home / "auth.json").chmod(0o600)


@pytest.fixture
async def houses(tmp_path):
    """`await houses(servers, ...)`: a daemon whose vendors are these servers, by dialect."""
    async with AsyncExitStack() as stack:

        async def begin(servers, *, further="", limits=AT_ONCE):
            configure(tmp_path / "zot", servers, further)
            place = await stack.enter_async_context(serving(tmp_path, limits))
            (place.cwd / "a.txt").write_text("walrus\n")
            return House(stack, place)

        yield begin


async def talking(house, own="anthropic", *fallbacks, **options):
    provider, _, model = MODELS[own].partition("/")
    names = {"fallback": [MODELS[name] for name in fallbacks]} if fallbacks else {}
    asked = {"model": model, "secrets": None, "reasoning": "high"} | names | options
    return await house.create(provider, None, **asked)


def started(place, *arguments):
    """`zot` with these arguments, in a process of its own."""
    argv = warm.command("zotd.cli", *arguments)
    return subprocess.Popen(argv, cwd=place.cwd, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def switches(events):
    return [
        (f"{e['provider']}/{e['model']}", e.get("own", False), e.get("brief", ""))
        for e in only(events, "model_switched")
    ]


# --- when ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "brief"),
    [
        (NO_CREDIT, "no credit"),
        (NO_MODEL, "no such model"),
        (Refusal(401, "invalid x-api-key"), "key refused"),
        (Refusal(403, "unsupported_country"), "no such model"),
        (BUSY, "HTTP 529"),
        (Refusal(429, "slow down"), "HTTP 429"),
        (Refusal(429, "slow down", headers={"retry-after": "3600"}), "HTTP 429"),
        (ScriptedReply([TextPart(["Once "]), Cut()]), "the reply was cut off"),
        (ScriptedReply([TextPart(["Once "]), StreamError("Overloaded", "overloaded_error")]), "overloaded"),
    ],
)
async def test_a_run_goes_on_with_the_next_model_and_says_why(houses, model, answer, brief):
    first, second = await model(answer), await model(text("hello"))
    house = await houses({"anthropic": first, "responses": second})
    talk = await talking(house, "anthropic", "responses")
    events = await talk.run()
    assert switches(events) == [(MODELS["responses"], False, brief)]
    assert only(events, "turn_end")[-1]["stop"] == "end_turn"
    assert words(only(events, "assistant_message")[-1]["content"]) == ["hello"]
    assert (await talk.texts())[-1] == ("assistant", ["hello"])
    late = await house.follow(talk.id)
    assert late.snapshot["session"]["fallback"] == MODELS["responses"]
    assert late.snapshot["session"]["model"] == OPUS


@pytest.mark.parametrize(
    "answer",
    [Refusal(400, "temperature: out of range"), Refusal(400, "blocked", kind="content_filter")],
    ids=["request", "content"],
)
async def test_a_refused_request_is_not_sent_to_another_vendor(houses, model, answer):
    first, second = await model(answer), await model(text("hello"))
    house = await houses({"anthropic": first, "responses": second})
    events = await (await talking(house, "anthropic", "responses")).run()
    assert only(events, "turn_end")[-1]["stop"] == "error"
    assert not second.requests


async def test_a_budget_that_is_used_up_ends_the_run_and_asks_no_other_model(houses, model):
    read = ScriptedReply([CallPart("read", {"path": "a.txt"})], usage=Tokens(input=900, output=200))
    first, second = await model(read), await model(text("hello"))
    house = await houses({"anthropic": first, "responses": second})
    talk = await talking(house, "anthropic", "responses", budget_tokens=1000)
    events = await talk.run()
    assert "budget of this session is used up" in only(events, "error")[0]["message"]
    assert not second.requests
    assert not switches(events)


async def test_budgets_count_the_requests_of_all_models(houses, model):
    first = await model(calls(CallPart("read", {"path": "a.txt"})), NO_CREDIT)
    read = ScriptedReply([CallPart("read", {"path": "a.txt"})], usage=Tokens(input=900, output=200))
    second = await model(read, text("hello"))
    house = await houses({"anthropic": first, "responses": second})
    talk = await talking(house, "anthropic", "responses", budget_tokens=1000)
    events = await talk.run()
    assert "budget of this session is used up" in only(events, "error")[0]["message"]
    assert (len(first.requests), len(second.requests)) == (2, 1)
    assert only(events, "usage")[-1]["cumulative"]["input"] == 10 + 900


async def test_without_fallbacks_that_answer_the_run_waits_for_the_first_model(houses, model):
    first, second = await model(BUSY, BUSY, text("at last")), await model(NO_CREDIT)
    house = await houses({"anthropic": first, "responses": second})
    events = await (await talking(house, "anthropic", "responses")).run()
    assert switches(events) == [(MODELS["responses"], False, "HTTP 529"), (MODELS["anthropic"], True, "no credit")]
    assert only(events, "retry")
    assert only(events, "turn_end")[-1]["stop"] == "end_turn"


# --- what is sent -------------------------------------------------------------------------------------------------

READ = CallPart("read", {"path": "a.txt"}, signature="sealed-call")
IDS = ("rs_", "msg_", "fc_", "toolu_", "sealed-call")
"""What scripted vendors call their items, and how they sign calls."""


def thinking(whose):
    """A step with a thought, a text and a call."""
    thought = ThinkingPart([f"a thought of the {whose}"], f"sealed-{whose}")
    return ScriptedReply([thought, TextPart([f"The {whose} looks."]), READ])


@pytest.mark.parametrize(("own", "other"), [*permutations(MODELS, 2)])
async def test_each_model_gets_the_whole_transcript_and_nothing_sealed_by_another(houses, model, own, other):
    first, second = await model(thinking("first"), BUSY, text("done")), await model(thinking("second"))
    house = await houses({own: first, other: second}, limits=SHORT_REST)
    events = await (await talking(house, own, other)).run()
    assert switches(events) == [(MODELS[other], False, "HTTP 529"), (MODELS[own], True, "")]
    [to_second] = [json.dumps(request.body) for request in second.requests]
    back = json.dumps(first.requests[-1].body)
    for body in (to_second, back):
        assert "The first looks." in body
        assert "walrus" in body
    assert "The second looks." in back
    assert [word for word in ("a thought", "sealed-first", *IDS) if word in to_second] == []
    assert [word for word in ("a thought of the second", "sealed-second") if word in back] == []
    assert "a thought of the first" in back, "its own thoughts go back to it"


async def test_the_key_and_the_address_of_one_vendor_do_not_reach_another(houses, model):
    first, second = await model(NO_CREDIT), await model(text("hello"))
    house = await houses({"responses": second})
    talk = await talking(
        house, "anthropic", "responses", secrets={"api_key": "sk-only-for-the-first"}, base_url=first.url
    )
    events = await talk.run()
    assert switches(events)
    [request] = second.requests
    assert "sk-only-for-the-first" not in json.dumps(dict(request.headers))
    assert request.headers["Authorization"] == "Bearer sk-responses"


async def test_a_transcript_that_is_too_long_for_the_fallback_is_summarised_first(houses, model):
    long = ScriptedReply([TextPart(["a long reply"])], usage=Tokens(input=9000, output=10))
    first, second = await model(long, NO_CREDIT), await model(text("the summary"), text("hello"))
    small = f'[[models]]\nprovider = "openai"\nid = "{SOL}"\ncontext_window = 8000\n'
    house = await houses({"anthropic": first, "responses": second}, further=small)
    talk = await talking(house, "anthropic", "responses")
    await talk.run("one")
    events = await talk.run("two")
    assert only(events, "compact_done")[0]["summary"] == "the summary"
    assert words(only(events, "assistant_message")[-1]["content"]) == ["hello"]


# --- and back -----------------------------------------------------------------------------------------------------


async def test_the_first_model_is_asked_again_after_its_rest_and_the_switch_is_undone(houses, model):
    first = await model(BUSY, BUSY, text("I am back"))
    second = await model(calls(CallPart("read", {"path": "a.txt"})), calls(CallPart("read", {"path": "a.txt"})))
    house = await houses({"anthropic": first, "responses": second}, limits=SHORT_REST)
    talk = await talking(house, "anthropic", "responses")
    events = await talk.run()
    # The second BUSY is no news: the fallback is still the one that answers.
    assert switches(events) == [(MODELS["responses"], False, "HTTP 529"), (MODELS["anthropic"], True, "")]
    assert words(only(events, "assistant_message")[-1]["content"]) == ["I am back"]
    assert not only(events, "retry")
    late = await house.follow(talk.id)
    assert "fallback" not in late.snapshot["session"]


async def test_the_next_run_begins_with_the_fallback_while_the_first_model_rests(houses, model):
    first, second = await model(NO_CREDIT), await model(text("one"), text("two"), text("three"))
    house = await houses({"anthropic": first, "responses": second})
    talk = await talking(house, "anthropic", "responses")
    assert switches(await talk.run())
    assert not switches(await talk.run()), "the same fallback is no news"
    other = await talking(house, "anthropic", "responses")
    assert switches(await other.run()) == [(MODELS["responses"], False, "no credit")]
    assert (len(first.requests), len(second.requests)) == (1, 3)


async def test_a_model_that_a_user_switches_to_is_asked(houses, model):
    first, second = await model(NO_CREDIT), await model(text("one"), text("two"))
    house = await houses({"anthropic": first, "responses": second})
    talk = await talking(house, "anthropic", "responses")
    await talk.run()
    await talk.ask("set_model", model=SOL, provider="openai")
    assert not switches(await talk.run())
    late = await house.follow(talk.id)
    assert "fallback" not in late.snapshot["session"]


@pytest.mark.parametrize("is_back", [True, False])
async def test_a_run_that_is_killed_on_a_fallback_goes_on_with_either_model(tmp_path, model, is_back):
    first = await model(NO_CREDIT, text("hello") if is_back else NO_MODEL)
    second = await model(thinking("second"), ScriptedReply([TextPart(["Half "]), Hang()]), text("hello"))
    configure(tmp_path / "zot", {"anthropic": first, "responses": second})
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, AT_ONCE))
        house = House(stack, daemon.place, daemon)
        (house.cwd / "a.txt").write_text("walrus\n")
        talk = await talking(house, "anthropic", "responses")
        await talk.ask("prompt", message="go")
        await second.received(2)
        house.restart(9)
        client = await house.connect()
        talk = await house.follow(talk.id, client)
        assert talk.snapshot["session"]["fallback"] == MODELS["responses"]
        await talk.ask("run_command", name="continue")
        events = await talk.until("done")
        assert switches(events) == ([(MODELS["anthropic"], True, "")] if is_back else [])
        assert (await talk.texts())[-1] == ("assistant", ["hello"])
    to_first = json.dumps(first.requests[1].body)
    assert "walrus" in to_first
    assert [word for word in ("a thought", "sealed", *IDS) if word in to_first] == []


# --- settings -----------------------------------------------------------------------------------------------------


async def test_the_configured_fallback_is_for_all_sessions_without_a_list_of_their_own(houses, model):
    first, second = await model(NO_CREDIT, NO_CREDIT), await model(text("one"), text("two"))
    house = await houses({"anthropic": first, "responses": second}, further=f'fallback = ["{OPUS}", "openai/{SOL}"]')
    assert switches(await (await talking(house)).run())
    without = await talking(house, fallback=[])
    events = await without.run()
    assert only(events, "turn_end")[-1]["stop"] == "error"
    await without.ask("session.configure", fallback=[SOL])
    assert switches(await without.run())


async def test_a_fallback_that_cannot_be_used_is_skipped_and_the_user_is_told(houses, model):
    first, second = await model(NO_CREDIT), await model(text("hello"))
    further = f'fallback = ["nobody/m", "mistral/mistral-large-latest", "openai/{SOL}"]'
    house = await houses({"anthropic": first, "responses": second}, further=further)
    events = await (await talking(house)).run()
    told = [event["text"] for event in only(events, "notice")]
    assert any("the fallback nobody/m is skipped" in sentence for sentence in told)
    assert any("the fallback mistral/mistral-large-latest is skipped: no key for Mistral" in line for line in told)
    assert switches(events) == [(MODELS["responses"], False, "no credit")]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["nobody/m"], '"nobody/m" is no model that the catalog knows'),
        (["mistral/nonsense"], "unknown fallback mistral/nonsense; zotctl models list --provider mistral"),
        ([MODELS["anthropic"]], "is the model of the session itself"),
        ([MODELS["chat"], MODELS["chat"]], "is named twice"),
    ],
)
async def test_nonsense_is_refused_when_it_is_set(houses, model, names, said):
    house = await houses({"anthropic": await model(), "chat": await model()})
    talk = await talking(house)
    answer = await talk.client.answer("session.configure", session=talk.id, fallback=names)
    assert (answer["success"], answer["code"]) == (False, "bad_request")
    assert said in answer["error"]


async def test_the_command_line_names_fallbacks_and_prints_the_switch_to_standard_error(tmp_path, model):
    first, second = await model(NO_CREDIT), await model(text("hello"))
    configure(tmp_path / "zot", {"anthropic": first, "responses": second})
    with DaemonProcess(tmp_path, AT_ONCE) as daemon:
        flags = ("--provider", "anthropic", "--model", OPUS, "--fallback", f"openai/{SOL}")
        zot = started(daemon.place, "-p", "go", *flags)
        await second.received(1)
        out, err = zot.communicate(timeout=30)
    assert out.decode().strip() == "hello"
    assert "has no credit" in err.decode()
    assert f"going on with openai/{SOL}" in err.decode()
