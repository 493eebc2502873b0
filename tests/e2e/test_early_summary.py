"""The summary that is requested before a transcript is full, while the run goes on."""

import asyncio
import signal
from contextlib import AsyncExitStack, closing

import pytest

from tests.e2e.conftest import House
from zotd.core import records
from zotd.core.compaction import SYSTEM
from zotd.core.transcript import SUMMARY_HEAD
from zotd.store.queries import records_from
from zotd.store.schema import open_read_only
from zotd.testing.live_daemon import serving
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, text
from zotd.wire.content import Tokens

MODELS = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o"}

WINDOW = {"anthropic": 200_000, "openai": 128_000}

SUMMARY = "A walrus was read."

SHORT = Tokens(input=1000, output=100)

EARLY, LATE = "early_summary", "compaction"


def is_summary(received):
    """Whether a request asks for a summary."""
    return SYSTEM in str(received.body)


class Script:
    """A model that reads a file in each step and reports a context of the next of these parts of the window; then `done`."""

    def __init__(self, vendor, *parts, summaries=()):
        """`summaries`: the answers to requests for one; after them `SUMMARY` at once."""
        self.vendor = vendor
        self.parts = list(parts)
        self.summaries = list(summaries)
        self.gates = {}
        """By the number of a step, from 1: what its answer waits for."""
        self.steps = 0

    def __call__(self, received):
        if is_summary(received):
            return self.summaries.pop(0) if self.summaries else text(SUMMARY, usage=SHORT)
        self.steps += 1
        wait = [Gate(self.gates[self.steps])] if self.steps in self.gates else []
        part = self.parts.pop(0) if self.parts else None
        if part is None:
            return ScriptedReply([*wait, TextPart(["done"])], usage=SHORT)
        usage = Tokens(input=int(WINDOW[self.vendor] * abs(part)), output=10)
        last = TextPart(["well"]) if part < 0 else CallPart("read", {"path": "a"})  # a negative part ends the run
        return ScriptedReply([*wait, last], usage=usage)


def held(event):
    """A summary that comes when the event is set."""
    return ScriptedReply([Gate(event), TextPart([SUMMARY])], usage=SHORT)


NEVER = ScriptedReply([Hang()])


@pytest.fixture
def begin(model):
    """`await begin(house, script)`: a session whose directory has the file, and the server of its model."""

    async def begin(house, script, **options):
        (house.cwd / "a").write_text("walrus")
        server = await model(script)
        talk = await house.create(script.vendor, server, **({"model": MODELS[script.vendor]} | options))
        return talk, server

    return begin


@pytest.fixture
async def configured(tmp_path_factory):
    """`await configured(COMPACT_EARLY_AT="0")`: a daemon in this loop with this in its environment."""
    async with AsyncExitStack() as stack:

        async def configured(**env):
            place = await stack.enter_async_context(
                serving(tmp_path_factory.mktemp("other"), {f"ZOT_{name}": value for name, value in env.items()})
            )
            return House(stack, place)

        yield configured


def stored(place, session):
    """Its records."""
    with closing(open_read_only(place.home / "zot.db")) as connection:
        return list(records_from(connection, session, 1))


def summaries(place, session):
    """The usage rows of requests for a summary: purpose, failure, and whether the summary is in it."""
    rows = [one for one in stored(place, session) if isinstance(one, records.UsageRow) and one.purpose != "reply"]
    return [(row.purpose, row.failure, bool(row.summary)) for row in rows]


async def until_billed(talk, place, count=1):
    """Wait until so many requests for a summary have ended: no event tells of it, so the session is asked."""
    async with asyncio.timeout(60):
        while len(summaries(place, talk.id)) < count:
            await talk.ask("get_state")


# --- when all is well -----------------------------------------------------------------------------------------


async def test_a_summary_is_made_beside_the_steps_and_used_at_the_mark_without_a_wait(begin, house, vendor, look):
    released, is_there = asyncio.Event(), asyncio.Event()
    script = Script(vendor, 0.72, 0.75, 0.78, 0.9, summaries=[held(released)])
    script.gates[4] = is_there
    talk, server = await begin(house, script)
    await talk.ask("prompt", message="read a")
    await server.received(5)  # the summary is held, and two steps were answered since its request
    assert sorted(map(is_summary, server.requests[1:3])) == [False, True]
    assert not any(map(is_summary, server.requests[3:]))
    released.set()
    await until_billed(talk, house.place)
    is_there.set()
    events = await talk.until("done")
    assert look.kinds(events).count("compact_done") == 1
    assert sum(map(is_summary, server.requests)) == 1
    assert SUMMARY in str(server.requests[-1].messages[: 1 if vendor == "anthropic" else 2])
    assert summaries(house.place, talk.id) == [(EARLY, "", True)]
    seen = await talk.texts()
    assert seen[0] == ("user", [SUMMARY_HEAD + SUMMARY])
    assert [role for role, _ in seen[1:]] == ["assistant", "tool"] * 4 + ["assistant"]  # all since the request


async def test_a_run_that_comes_to_the_mark_first_waits_for_the_request_under_way(begin, house, look):
    released = asyncio.Event()
    talk, server = await begin(house, Script("openai", 0.72, -0.9, summaries=[held(released)]))
    await talk.run("a")
    await talk.ask("prompt", message="b")
    shown = await talk.until("user_message")
    assert look.words(shown[-1]["content"]) == ["b"]  # before the summary is there
    assert (await talk.ask("queue.list"))["items"] == []
    released.set()
    events = await talk.until("done")
    assert look.kinds(events).index("compact_done") < look.kinds(events).index("assistant_start")
    assert sum(map(is_summary, server.requests)) == 1
    assert summaries(house.place, talk.id) == [(EARLY, "", True)]


async def test_a_summary_outlives_its_run_and_an_abort(begin, house, look):
    released = asyncio.Event()
    script = Script("openai", 0.72, 0.75, -0.9, summaries=[held(released)])
    script.gates[2] = asyncio.Event()
    talk, server = await begin(house, script)
    await talk.ask("prompt", message="a")
    await server.received(3)
    await talk.ask("abort")
    await talk.until("done")
    assert await talk.state() == "idle"
    script.gates.pop(2).set()
    released.set()
    await until_billed(talk, house.place)
    await talk.run("b")
    events = await talk.run("c")
    assert "compact_done" in look.kinds(events)
    assert sum(map(is_summary, server.requests)) == 1


async def test_what_the_summary_took_counts_once(begin, house):
    script = Script("openai", 0.72, 0.75, 0.9)
    script.gates[2] = is_there = asyncio.Event()
    talk, _ = await begin(house, script)
    await talk.ask("prompt", message="a")
    await until_billed(talk, house.place)
    is_there.set()
    await talk.until("done")
    rows = [one for one in stored(house.place, talk.id) if isinstance(one, records.UsageRow)]
    total = (await talk.ask("session.get"))["usage"]
    assert total["input"] == sum(row.tokens.input for row in rows if row.tokens)
    assert len(rows) == 5


# --- when it is not made --------------------------------------------------------------------------------------


async def test_a_model_that_fails_is_asked_once_in_the_background_and_again_when_the_run_needs_it(begin, house, look):
    script = Script("openai", 0.72, 0.75, 0.78, 0.9, summaries=[Refusal(529)])
    script.gates[2] = is_there = asyncio.Event()
    talk, server = await begin(house, script)
    await talk.ask("prompt", message="a")
    await until_billed(talk, house.place)
    is_there.set()
    events = await talk.until("done")
    assert "error" not in look.kinds(events)
    assert "retry" not in look.kinds(events)
    assert sum(map(is_summary, server.requests)) == 2
    assert summaries(house.place, talk.id) == [(EARLY, "overloaded", False), (LATE, "", False)]
    assert (await talk.texts())[0] == ("user", [SUMMARY_HEAD + SUMMARY])


async def test_a_run_that_waits_for_a_request_that_fails_asks_for_a_summary_itself(begin, house, look):
    released = asyncio.Event()
    fails = ScriptedReply([Gate(released), TextPart([])])  # an empty summary
    talk, server = await begin(house, Script("openai", 0.72, 0.9, summaries=[fails]))
    await talk.ask("prompt", message="a")
    await server.received(3)
    released.set()
    events = await talk.until("done")
    assert look.kinds(events).count("compact_done") == 1
    assert summaries(house.place, talk.id) == [(EARLY, "refused", False), (LATE, "", False)]


@pytest.mark.parametrize(
    ("limit", "is_made"),
    [
        ({"budget_tokens": 200_000}, False),
        ({"budget_tokens": 1_000_000}, True),
        ({"budget_usd": 0.5}, False),
        ({"budget_usd": 5.0}, True),
    ],
)
async def test_no_summary_is_made_early_if_it_brings_a_budget_above_four_fifths(begin, house, look, limit, is_made):
    """The first step takes 92,160 tokens or 0.23 USD, and the summary would take a little more."""
    talk, server = await begin(house, Script("openai", 0.72, 0.73), **limit)
    assert "error" not in look.kinds(await talk.run("a"))
    assert any(map(is_summary, server.requests)) is is_made


async def test_no_summary_is_made_early_when_that_is_switched_off(begin, configured):
    house = await configured(COMPACT_EARLY_AT="0")
    talk, server = await begin(house, Script("openai", 0.72, 0.84))
    await talk.run("a")
    assert not any(map(is_summary, server.requests))


# --- when it is about another history -------------------------------------------------------------------------


@pytest.fixture
async def requested(begin, house):
    """A session at rest whose early summary has been requested and does not come, and its server."""
    talk, server = await begin(house, Script("openai", -0.5, 0.72, -0.75, summaries=[NEVER]))
    await talk.run("a")
    await talk.run("b")
    await server.received(4)
    return talk, server


async def clear(talk):
    await talk.ask("clear")


async def rewind(talk):
    first = next(one["seq"] for one in talk.client.seen if one["type"] == "assistant_message")
    await talk.ask("session.rewind", seq=first)


async def compact(talk):
    await talk.ask("compact")
    await talk.until("done")


async def choose(talk):
    await talk.ask("set_model", model="gpt-4o-mini")


@pytest.mark.parametrize("change", [clear, rewind, compact, choose])
async def test_a_summary_of_another_history_or_model_is_cancelled_and_never_used(requested, house, change):
    talk, _ = requested
    await change(talk)
    await until_billed(talk, house.place, 1 if change is not compact else 2)
    assert (EARLY, "aborted", False) in summaries(house.place, talk.id)
    await talk.run("c")
    heads = [SUMMARY_HEAD + SUMMARY in words for _, words in await talk.texts()]
    assert heads.count(True) == (change is compact)


async def test_a_fork_does_not_have_the_request_of_its_origin(requested, house):
    talk, _ = requested
    made = await talk.ask("session.fork")
    fork = await house.follow(made["session"]["id"])
    await fork.run("c")
    await until_billed(fork, house.place)
    assert summaries(house.place, fork.id) == [(EARLY, "", True)]  # one of its own
    assert summaries(house.place, talk.id) == []  # its own is still under way


async def test_a_session_that_is_closed_ends_its_request(requested, house):
    talk, _ = requested
    await talk.ask("session.close")
    await until_billed(talk, house.place)
    assert summaries(house.place, talk.id) == [(EARLY, "aborted", False)]


# --- after a crash --------------------------------------------------------------------------------------------


async def test_a_request_that_a_crash_cut_is_billed_at_the_next_start_and_made_again(process, begin):
    script = Script("openai", 0.72, -0.75, -0.76, summaries=[NEVER])
    talk, server = await begin(process, script)
    await talk.run("a")
    await server.received(3)
    process.restart(signal.SIGKILL)
    client = await process.connect()
    async with asyncio.timeout(60):
        while not summaries(process.place, talk.id):
            await client.ask("daemon.status")
    assert summaries(process.place, talk.id) == [(EARLY, "interrupted", False)]
    talk = await process.follow(talk.id, client)
    assert await talk.state() == "idle"
    await talk.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    await talk.run("b")
    await until_billed(talk, process.place, 2)
    assert summaries(process.place, talk.id)[1] == (EARLY, "", True)


async def test_a_summary_that_is_there_survives_a_crash_and_is_used(process, begin, look):
    talk, server = await begin(process, Script("openai", 0.72, -0.9))
    await talk.run("a")
    await until_billed(talk, process.place)
    process.restart(signal.SIGKILL)
    talk = await process.follow(talk.id)
    await talk.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    events = await talk.run("b")
    assert "compact_done" in look.kinds(events)
    assert sum(map(is_summary, server.requests)) == 1


async def test_a_stop_ends_the_request_and_records_what_it_took(process, begin):
    talk, server = await begin(process, Script("openai", 0.72, -0.75, summaries=[NEVER]))
    await talk.run("a")
    await server.received(3)
    process.restart(signal.SIGTERM)
    assert summaries(process.place, talk.id) == [(EARLY, "aborted", False)]
