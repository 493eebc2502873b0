"""Sessions of users: whose a session is that a client, a timer, a batch or a sender of a channel begins."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import pytest

from tests.e2e.batch_house import furnish, result, submit
from tests.e2e.conftest import House
from tests.e2e.fleet import output_of, printed_by
from tests.e2e.holders import joined
from tests.e2e.test_channels import configure, pair
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text
from zotd.testing.telegram_server import USER, TelegramServer
from zotd.wire import api
from zotd.wire.batches import BatchPromptOrder, BatchSubmit
from zotd.wire.timers import TimerAdd

DOOR = {"ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def opened(stack, tmp_path):
    """`opened(server)`: a daemon with a door, whose model is of this server."""

    def opened(server, **variables):
        furnish(tmp_path, server)
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"OPENAI_API_KEY": "sk-x", **DOOR, **variables}))
        return House(stack, daemon.place, daemon)

    return opened


async def info_of(house, session):
    return await (await house.connect()).ask("session.get", session=session)


async def test_a_session_is_of_the_user_of_the_token_and_lists_show_it_at_every_daemon(fleet, stack):
    one, two = fleet
    alice, bob = await joined(stack, one, "alice"), await joined(stack, two, "bob")
    hers, his = await alice.begin(), await bob.begin()
    assert (hers.user, his.user) == ("alice", "bob")
    local = await (await two.connect()).ask("session.create", cwd=str(two.cwd), provider="ollama", model="none")
    nobodys = local["session"]["id"]
    assert "user" not in local["session"]
    assert await bob.ids() == {hers.id, his.id, nobodys}  # users are no rights: lists have all
    assert await bob.ids(user="alice") == {hers.id}
    assert await alice.ids(user="nobody") == set()
    table = await output_of(two, "zotctl", "sessions")
    assert "USER" in table.splitlines()[0]
    found = json.loads(await output_of(two, "zotctl", "sessions", "--user", "alice", "--json"))["sessions"]
    assert [(one["id"], one["user"]) for one in found] == [(hers.id, "alice")]


async def test_the_user_of_a_forwarded_client_comes_along(fleet, stack):
    one, two = fleet
    alice = await joined(stack, one, "alice")
    there = await (await two.connect()).ask("session.create", cwd=str(two.cwd), provider="ollama", model="none")
    origin = there["session"]["id"]
    talk = await two.follow(origin)
    await talk.ask("shell", command="true")
    await talk.until("done")
    made = await alice.client.ask(api.Fork(session=origin), api.Created, command="session.fork")
    assert made.session.user == "alice"
    assert "user" not in await info_of(two, origin)


async def test_sessions_of_people_who_use_no_users_are_listed_as_ever(opened, model):
    house = opened(await model(text("fine")))
    client = await house.connect()
    await client.ask("session.create", cwd=str(house.cwd))
    assert "USER" not in await output_of(house, "zotctl", "sessions")
    (found,) = json.loads(await output_of(house, "zotctl", "sessions", "--json"))["sessions"]
    assert "user" not in found


async def test_a_user_stays_that_of_the_session_after_a_restart_and_when_others_prompt_it(opened, stack, model):
    house = opened(await model(lambda _: text("fine")))
    alice = await joined(stack, house, "alice")
    session = await alice.begin()
    await alice.client.ask(api.SessionConfigure(session=session.id, name="hers"), api.SessionInfo)
    house.daemon.end()
    house.daemon.start()
    talk = await house.follow(session.id)
    await talk.ask("session.rename", name="still hers")
    assert (await info_of(house, session.id))["user"] == "alice"


async def test_a_subagent_belongs_to_the_user_of_its_parent(opened, stack, model):
    task = {"description": "look", "prompt": "look around"}

    def answer(request):
        is_first = len(request.messages) <= 2 and "delegate" in str(request.messages)
        return calls(CallPart("task", task)) if is_first else text("done")

    house = opened(await model(answer), ZOT_APPROVAL_MODE="yolo")
    alice = await joined(stack, house, "alice")
    session = (await alice.client.ask(api.SessionCreate(cwd=str(house.cwd)), api.Created)).session
    await alice.run(session.id, "delegate it")
    page = await alice.client.ask(api.SessionList(user="alice", subagents=True), api.Sessions)
    assert sorted(one.parent is None for one in page.sessions) == [False, True]


async def test_the_sessions_of_a_timer_belong_to_the_user_who_has_made_it(opened, stack, model):
    house = opened(await model(lambda _: text("fine")))
    alice = await joined(stack, house, "alice")
    watch = await house.connect()
    await watch.ask("subscribe", topics=["sessions"])
    order = TimerAdd(message="look", cwd=str(house.cwd), every_s=3600, now=True)
    await alice.client.call(order, command="timer.add")
    added = (await watch.until("session_added"))[-1]
    assert (await info_of(house, added["session"]))["user"] == "alice"


async def test_the_sessions_of_a_batch_belong_to_the_user_who_has_submitted_it(opened, stack, model):
    house = opened(await model(lambda _: text("fine")))
    alice = await joined(stack, house, "alice")
    prompt = BatchPromptOrder(number=1, message="go", cwd=str(house.cwd))
    await alice.client.call(BatchSubmit(batch="b", prompts=[prompt]))
    assert (await info_of(house, (await result(house))["session"]))["user"] == "alice"
    (batch,) = (await (await house.connect()).ask("batch.list"))["batches"]
    assert batch["submitter"] == "alice"
    assert await submit(house, "go", client=await house.connect()) == {"added": 0, "known": 1}
    assert (await result(house))["text"] == "fine"
    await submit(house, "go", batch="c")
    assert "user" not in await info_of(house, (await result(house, "c"))["session"])


async def test_an_imported_session_belongs_to_the_user_who_imports_it_whatever_the_file_says(opened, stack, model):
    house = opened(await model(text("fine")))
    alice, bob = await joined(stack, house, "alice"), await joined(stack, house, "bob", role="admin")
    session = (await alice.client.ask(api.SessionCreate(cwd=str(house.cwd)), api.Created)).session
    await alice.run(session.id)
    path = house.cwd / "hers.jsonl"
    path.write_text(await output_of(house, "zotctl", "export", "--session", session.id))
    admin = await house.connect(role="admin")
    await admin.ask("session.delete", session=session.id)
    made = await bob.client.ask(api.Import(path=str(path)), api.Imported)
    assert made.session.user == "bob"


async def test_a_sender_of_a_channel_is_a_user_with_the_name_that_the_audit_trail_has(tmp_path, model):
    server = await model(text("Hello from afar."))
    async with TelegramServer() as telegram:
        configure(tmp_path / "zot", telegram, server)
        with DaemonProcess(tmp_path) as daemon:
            await pair(daemon, telegram)
            await telegram.write("hello!")
            await telegram.said(3)
            async with AsyncExitStack() as stack:
                house = House(stack, daemon.place, daemon)
                wanted = f"channel:telegram:{USER}"
                found = json.loads(await output_of(house, "zotctl", "sessions", "--user", wanted, "--json"))["sessions"]
                assert [one["user"] for one in found] == [wanted]


async def test_tokens_name_their_users_and_bad_names_are_refused(opened, model):
    house = opened(await model(text("fine")))
    await output_of(house, "zotctl", "token", "create", "phone", "--user", "alice@example.org")
    await output_of(house, "zotctl", "token", "create", "board")
    head, *rows = (await output_of(house, "zotctl", "token", "list")).splitlines()
    assert head.split()[-1] == "USER"
    assert [row.split()[-1] for row in rows] == ["alice@example.org", "all"]
    assert "user=alice@example.org" in await output_of(house, "zotctl", "audit")
    for name in ("*", "a\x1bb", "x" * 65, "", "channel:telegram:1", "two words"):
        code, _, err = await printed_by(house, "zotctl", "token", "create", "t", "--user", name)
        assert code == 1
        assert "the name of a user must have 1 to 64 letters, digits, dots, dashes, underscores or @" in err


async def test_a_program_of_a_session_begins_sessions_of_the_user_of_that_session(opened, stack, model):
    """`nested = "submit"`: ephemeral sessions, while the program runs."""
    begin = (
        "import asyncio\n"
        "from zotd.client.client import Client\n"
        "from zotd.wire import api\n"
        "async def main():\n"
        "    async with Client.connect() as client:\n"
        "        order = api.SessionCreate(cwd='/', ephemeral=True)\n"
        "        made = await client.ask(order, api.Created)\n"
        "        print('it is of', made.session.user)\n"
        "asyncio.run(main())\n"
    )

    def answer(request):
        return text("done") if len(request.messages) > 2 else calls(CallPart("bash", {"command": "$PYTHON begin.py"}))

    house = opened(await model(answer), ZOT_APPROVAL_MODE="yolo", ZOT_NESTED="submit")
    (house.cwd / "begin.py").write_text(begin)
    alice = await joined(stack, house, "alice")
    env = house.place.env | {"PYTHON": sys.executable}
    async with asyncio.timeout(60):
        order = api.SessionCreate(cwd=str(house.cwd), env=env)
        session = (await alice.client.ask(order, api.Created)).session
        await alice.run(session.id)
    talk = await house.follow(session.id)
    assert "it is of alice" in str(await talk.texts())
