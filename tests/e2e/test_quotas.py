"""Quotas of users in real daemons: what a user may spend in a day, and how many sessions they may have."""

import asyncio
import contextlib
import json
from contextlib import AsyncExitStack

import pytest

from tests.e2e.batch_house import result
from tests.e2e.conftest import House
from tests.e2e.fleet import output_of
from tests.e2e.holders import joined
from tests.e2e.test_channels import configure, pair
from zotd.client.errors import CallError
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, ScriptedReply, calls, text
from zotd.testing.telegram_server import USER, TelegramServer
from zotd.wire import api
from zotd.wire.batches import BatchPromptOrder, BatchSubmit
from zotd.wire.content import Tokens
from zotd.wire.timers import TimerAdd

QUARTER = Tokens(input=100_000)
"""What a request takes that costs a quarter of a dollar, with gpt-4o."""

LATE = {"ZOT_COMPACT_EARLY_AT": "0", "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
"""Replies here are so long that an early summary would take answers out of the script."""


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def one(stack, tmp_path):
    """A daemon with a file, and a door."""
    daemon = stack.enter_context(DaemonProcess(tmp_path, LATE))
    return House(stack, daemon.place, daemon)


def quarter(*words):
    return text(*(words or ("fine",)), usage=QUARTER)


async def limit(house, *tables):
    """Change the quotas of a daemon."""
    (house.place.home / "config.toml").write_text("".join(f"[users.{table}\n" for table in tables))
    await (await house.connect(role="admin")).ask("daemon.reload")


async def refused(awaitable):
    """The code and the sentence."""
    with pytest.raises(CallError) as caught:
        await awaitable
    return caught.value.code, str(caught.value)


def prompt(holder, session):
    return holder.client.call(api.Prompt(session=session.id, message="more"))


async def test_money_that_is_used_up_at_one_daemon_is_used_up_at_all(member, stack, model):
    server = await model(lambda _: quarter())
    houses = [member(name, **LATE) for name in ("one", "two")]
    for house in houses:
        await limit(house, "alice]\nusd_per_day = 0.3")
    alice, elsewhere = [await joined(stack, house, "alice") for house in houses]
    bob = await joined(stack, houses[1], "bob")
    first, second = await alice.begin(server), await elsewhere.begin(server)
    await alice.run(first.id)
    await elsewhere.run(second.id)
    assert len(server.requests) == 2
    for holder, session in ((alice, first), (elsewhere, second)):
        async with asyncio.timeout(60):
            while True:  # what is known is up to a second old
                with contextlib.suppress(AssertionError):
                    talk = await holder.house.follow(session.id)
                    answer = await talk.client.answer("prompt", session=session.id, message="more")
                    assert not answer["success"]
                    break
        assert answer["code"] == "budget_exceeded"
        assert answer["error"] == (
            "what the user alice may spend today is used up: $0.50 of $0.30; continue after 00:00 UTC, or raise `usd_per_day` "
            "for alice in config.toml and run zotctl reload"
        )
    assert len(server.requests) == 2, "a prompt that was accepted sent no request"
    his = await bob.begin(server)
    await bob.run(his.id)
    assert len(server.requests) == 3


async def test_a_run_ends_before_the_request_that_no_money_is_left_for(one, stack, model):
    step = ScriptedReply([CallPart("read", {"path": "nowhere"})], usage=QUARTER)
    server = await model(step, quarter())
    await limit(one, "alice]\nusd_per_day = 0.2")
    alice = await joined(stack, one, "alice")
    session = await alice.begin(server)
    talk = await one.follow(session.id)
    await prompt(alice, session)
    events = await talk.until("done")
    (message,) = [event["message"] for event in events if event["type"] == "error"]
    assert "what the user alice may spend today is used up: $0.25 of $0.20" in message
    assert len(server.requests) == 1


async def test_deleting_sessions_and_restarting_give_no_money_back(one, stack, model):
    server = await model(lambda _: quarter())
    await limit(one, "alice]\nusd_per_day = 0.2")
    alice = await joined(stack, one, "alice")
    session = await alice.begin(server)
    await alice.run(session.id)
    await (await one.connect(role="admin")).ask("session.delete", session=session.id)
    other = await alice.begin(server)
    assert (await refused(prompt(alice, other)))[0] == "budget_exceeded"
    one.daemon.end()
    one.daemon.start()
    again = await joined(stack, one, "alice", name="again")
    assert (await refused(prompt(again, await again.begin(server))))[0] == "budget_exceeded"


async def test_a_session_counts_for_its_user_whoever_prompts_it_and_others_go_on(one, stack, model):
    server = await model(lambda _: quarter())
    await limit(one, '"*"]\nusd_per_day = 0.2')
    alice, bob = await joined(stack, one, "alice"), await joined(stack, one, "bob")
    hers, his = await alice.begin(server), await bob.begin(server)
    await bob.run(hers.id)
    assert "the user alice" in (await refused(prompt(bob, hers)))[1]
    await bob.run(his.id)
    local = await one.create("openai", server, model="gpt-4o")
    for _ in range(2):
        await local.run()  # without a user, nothing is limited
    assert len(server.requests) == 4


async def test_a_user_with_a_table_of_their_own_has_only_the_limits_of_that_table(one, stack, model):
    server = await model(lambda _: quarter())
    await limit(one, '"*"]\nusd_per_day = 0.2\nsessions = 1', "alice]\nsessions = 2")
    alice = await joined(stack, one, "alice")
    session = await alice.begin(server)
    for _ in range(3):
        await alice.run(session.id)
    await alice.begin(server)
    assert (await refused(alice.begin(server)))[1].startswith(
        "the user alice has 2 sessions, and may have 2; delete one"
    )


async def test_of_many_clients_at_two_daemons_only_as_many_get_a_session_as_the_user_may_have(member, stack):
    houses = [member(name, **LATE) for name in ("one", "two")]
    for house in houses:
        await limit(house, "alice]\nsessions = 3")
    holders = [await joined(stack, house, "alice", name=f"alice{n}") for n in range(3) for house in houses]
    outcomes: list[object] = []

    async def begin(holder):
        try:
            outcomes.append((await holder.begin()).id)
        except CallError as error:
            outcomes.append(error.code)

    async with asyncio.TaskGroup() as tasks:
        for holder in holders * 3:
            tasks.create_task(begin(holder))
    made = {one for one in outcomes if str(one).startswith("s_")}
    assert (len(outcomes), len(made), set(outcomes) - made) == (18, 3, {"budget_exceeded"})
    assert await holders[0].ids(user="alice") == made


async def test_a_deleted_session_makes_room_and_forks_and_imports_need_some(one, stack, model):
    server = await model(lambda _: text("fine"))
    await limit(one, "alice]\nsessions = 2")
    alice = await joined(stack, one, "alice", role="admin")
    first, second = await alice.begin(server), await alice.begin(server)
    await alice.run(first.id)
    path = one.cwd / "first.jsonl"
    path.write_text(await output_of(one, "zotctl", "export", "--session", first.id))
    fork = api.Fork(session=first.id)
    sentence = (
        "the user alice has 2 sessions, and may have 2; delete one (zotctl delete), or raise `sessions` for this user in "
        "config.toml and run zotctl reload"
    )
    for order in (alice.client.call(fork, command="session.fork"), alice.client.call(api.Import(path=str(path)))):
        code, error = await refused(order)
        assert (code, sentence in error) == ("budget_exceeded", True)
    assert await alice.ids() == {first.id, second.id}, "nothing incomplete is listed"
    await alice.client.call(api.Mutation(session=second.id), command="session.delete")
    made = await alice.client.ask(fork, api.Created, command="session.fork")
    assert await alice.ids() == {first.id, made.session.id}


async def test_subagents_need_no_place_of_their_own(one, stack, model):
    def answer(request):
        is_first = len(request.messages) <= 2 and "delegate" in str(request.messages)
        return calls(CallPart("task", {"description": "look", "prompt": "look around"})) if is_first else text("done")

    server = await model(answer)
    await limit(one, "alice]\nsessions = 1")
    alice = await joined(stack, one, "alice")
    session = await alice.begin(server, mode="yolo")
    await alice.run(session.id, "delegate it")
    assert len(await alice.ids(user="alice", subagents=True)) == 2
    assert (await refused(alice.begin(server)))[0] == "budget_exceeded"


async def test_what_an_imported_session_has_spent_counts_for_nobody(one, stack, model):
    server = await model(lambda _: quarter())
    await limit(one, "bob]\nusd_per_day = 0.2")
    bob = await joined(stack, one, "bob", role="admin")
    local = await one.create("openai", server, model="gpt-4o")
    await local.run()
    path = one.cwd / "session.jsonl"
    path.write_text(await output_of(one, "zotctl", "export", "--session", local.id))
    await (await one.connect(role="admin")).ask("session.delete", session=local.id)
    await bob.client.call(api.Import(path=str(path)))
    his = await bob.begin(server)
    await bob.run(his.id)
    assert (await refused(prompt(bob, his)))[0] == "budget_exceeded"


async def test_a_quota_that_is_lowered_keeps_what_is_there_and_refuses_more(one, stack, model):
    server = await model(lambda _: quarter())
    alice = await joined(stack, one, "alice")
    sessions = [await alice.begin(server) for _ in range(3)]
    await alice.run(sessions[0].id)
    await limit(one, "alice]\nsessions = 1\nusd_per_day = 0.3")
    assert "has 3 sessions, and may have 1" in (await refused(alice.begin(server)))[1]
    await alice.run(sessions[1].id)
    assert (await refused(prompt(alice, sessions[2])))[0] == "budget_exceeded"
    await limit(one)
    await alice.run(sessions[2].id)
    assert len(await alice.ids()) == 3


async def test_a_user_with_a_quota_has_no_sessions_that_are_not_stored(one, stack):
    await limit(one, "alice]\nusd_per_day = 5")
    alice, bob = await joined(stack, one, "alice"), await joined(stack, one, "bob")
    code, sentence = await refused(alice.begin(ephemeral=True))
    assert (code, "a session that is not stored is not counted; leave out --no-session" in sentence) == (
        "forbidden",
        True,
    )
    assert (await bob.begin(ephemeral=True)).ephemeral


async def test_a_session_of_a_user_with_a_quota_is_as_any_other(one, stack, model):
    server = await model(text("fine"), text("well"))
    await limit(one, "alice]\nsessions = 5")
    alice = await joined(stack, one, "alice")
    made = await alice.begin(server, name="work", discard_unused=True)
    assert (made.name, made.state, made.model) == ("work", "idle", "gpt-4o")
    await alice.run(made.id)
    one.daemon.end()
    one.daemon.start()
    talk = await one.follow(made.id)
    assert [role for role, _ in await talk.texts()] == ["user", "assistant"]


async def test_a_timer_and_a_batch_that_would_need_another_session_fail_with_the_sentence(one, stack):
    await limit(one, "alice]\nsessions = 0")
    alice = await joined(stack, one, "alice")
    sentence = "the user alice has 0 sessions, and may have 0; delete one"
    prompt = BatchPromptOrder(number=1, message="go", cwd="/", provider="ollama", model="none")
    await alice.client.call(BatchSubmit(batch="b", prompts=[prompt]))
    found = await result(one)
    assert (found["state"], found["error"][: len(sentence)]) == ("failed", sentence)
    client = await one.connect()
    await client.ask("subscribe", topics=["timers"])
    order = TimerAdd(message="go", cwd="/", every_s=3600, now=True, provider="ollama", model="none")
    await alice.client.call(order)
    while True:
        (timer,) = (await client.ask("timer.list"))["timers"]
        if timer.get("outcome"):
            break
        await client.until("timers_changed")
    assert sentence in timer["outcome"]


async def test_a_sender_of_a_channel_who_may_spend_nothing_is_told_so(tmp_path, model):
    server = await model(text("never"))
    async with TelegramServer() as telegram:
        configure(tmp_path / "zot", telegram, server)
        with (tmp_path / "zot" / "config.toml").open("a") as config:
            config.write(f'[users."channel:telegram:{USER}"]\nusd_per_day = 0\n')
        with DaemonProcess(tmp_path) as daemon:
            await pair(daemon, telegram)
            await telegram.write("hello!")
            answer = (await telegram.said(3))[2]["text"]
    assert f"what the user channel:telegram:{USER} may spend today is used up: $0.00 of $0.00" in str(answer)
    assert server.requests == []


async def test_users_are_listed_with_what_they_have_and_may_spend(member, stack, model):
    server = await model(lambda _: quarter())
    houses = [member(name, **LATE) for name in ("one", "two")]
    await limit(houses[0], "alice]\nusd_per_day = 2", "carol]", '"*"]\nsessions = 9')
    alice, elsewhere = [await joined(stack, house, "alice") for house in houses]
    bob = await joined(stack, houses[1], "bob")
    first, second = await alice.begin(server), await elsewhere.begin(server)
    await alice.run(first.id)
    await elsewhere.run(second.id)
    await bob.begin(server)
    await (await houses[0].connect(role="admin")).ask("session.delete", session=first.id)
    await houses[0].create("openai", server, model="gpt-4o")
    rows = [row.split() for row in (await output_of(houses[0], "zotctl", "users")).splitlines()[1:]]
    assert rows == [
        ["alice", "1", "none", "0.5000", "2.0000"],
        ["bob", "1", "9", "0.0000", "none"],
        ["carol", "0", "none", "0.0000", "none"],
    ]
    found = json.loads(await output_of(houses[1], "zotctl", "users", "--json"))
    assert [(one["user"], one["spent_usd"], one["usd_per_day"]) for one in found["users"]] == [
        ("alice", 0.5, None),
        ("bob", 0.0, None),
    ]
    usage = json.loads(await output_of(houses[1], "zotctl", "usage", "--by", "user", "--json"))["rows"]
    assert [(row["key"], row["cost_usd"]) for row in usage] == [("alice", 0.25)]


async def test_a_quota_that_is_no_quota_is_refused_and_the_old_one_holds(one):
    admin = await one.connect(role="admin")
    await limit(one, "alice]\nsessions = 1")
    for table, why in (
        ("alice]\nsessions = -1", "'alice', sessions: expected `int` >= 0"),
        ("alice]\nusd_per_day = nan", "'alice', usd_per_day: expected `float` >= 0.0"),
        ('"a b"]\nsessions = 1', "'a b': this is not the name of a user"),
        ('"a\\u001b"]\nsessions = 1', "this is not the name of a user"),
        ("alice]\nlimit = 1", "'alice': object contains unknown field `limit`"),
    ):
        (one.place.home / "config.toml").write_text(f"[users.{table}\n")
        answer = await admin.answer("daemon.reload")
        assert (answer["code"], why in answer["error"]) == ("conflict", True), answer
