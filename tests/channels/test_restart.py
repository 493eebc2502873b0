"""Everything is killed, at the worst moments: no message is lost, none runs twice, and every one is answered."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from tests.channels.conftest import Chat
from tests.channels.house import ENV, serving
from zotd.channels.answers import INTERRUPTED
from zotd.channels.channels import _key
from zotd.channels.conversations import HELD
from zotd.channels.state import Delivery, PeerStore
from zotd.testing import warm
from zotd.testing.script import Hang, ScriptedReply, TextPart, text

WAIT_S = 30.0


@asynccontextmanager
async def process(folder, model, telegram):
    """The house as a process, killed at the end of the block."""
    started = await asyncio.create_subprocess_exec(
        *warm.command("tests.channels.house", folder, model.openai_url, telegram.url),
        env=ENV,
        stdout=asyncio.subprocess.PIPE,
    )
    assert started.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            word, pid = (await started.stdout.readline()).split()
        assert word == b"ready"
        yield
        os.kill(int(pid), signal.SIGKILL)
    finally:
        if started.returncode is None:
            started.send_signal(signal.SIGKILL)
        async with asyncio.timeout(WAIT_S):
            await started.wait()
            await started.stdout.read()


@pytest.fixture
def pair_first(tmp_path, telegram):
    """`await pair_first(model)`: Telegram user 7 is paired, and nothing runs."""

    async def pair_first(model):
        async with serving(tmp_path, model.openai_url, telegram.url) as house:
            await Chat(telegram, house).pair()

    return pair_first


def answers(telegram):
    return [message["text"] for message in telegram.sent[2:]]  # after those of the pairing


async def test_a_message_that_was_not_accepted_comes_again(tmp_path, model, telegram, pair_first):
    """Killed between the moment at which Telegram hands it out and the one at which it is in the journal."""
    server = await model(lambda _: text("here"))
    await pair_first(server)
    async with process(tmp_path, server, telegram):
        polls = len([1 for method, _ in telegram.requests if method == "getUpdates"])
        await telegram.asked("getUpdates", polls + 1)
        await telegram.write("hello")
    async with process(tmp_path, server, telegram):
        await telegram.said(3)
    async with serving(tmp_path, server.openai_url) as house:
        assert await house.inputs() == ["hello"]


async def test_an_interrupted_run_is_not_repeated_and_its_sender_is_notified(tmp_path, model, telegram, pair_first):
    server = await model(ScriptedReply([TextPart(["Once"]), Hang()]), text("again"))
    await pair_first(server)
    async with process(tmp_path, server, telegram):
        await telegram.write("a story")
        await server.received(1)
    async with process(tmp_path, server, telegram):
        assert [one["text"] for one in (await telegram.said(3))[2:]] == [INTERRUPTED]
        await telegram.write("another one")
        assert (await telegram.said(4))[3]["text"] == "again"
    assert len(server.requests) == 2


async def test_a_message_that_waited_runs_after_a_restart_when_its_sender_writes_again(
    tmp_path, model, telegram, pair_first
):
    server = await model(ScriptedReply([Hang()]), text("second"), text("third"))
    await pair_first(server)
    async with process(tmp_path, server, telegram):
        await telegram.write("first")
        await server.received(1)
        number = await telegram.write("second")
        await telegram.confirmed(number)
    async with process(tmp_path, server, telegram):
        assert {one["text"] for one in (await telegram.said(4))[2:]} == {INTERRUPTED, HELD}
        await telegram.write("third")
        assert [one["text"] for one in (await telegram.said(6))[4:]] == ["second", "third"]


async def test_an_answer_that_telegram_did_not_take_is_delivered_after_a_restart(tmp_path, model, telegram, pair_first):
    server = await model(text("the answer"))
    await pair_first(server)
    telegram.takes_messages = False
    async with process(tmp_path, server, telegram):
        await telegram.write("a question")
        await telegram.asked("sendMessage", 3)
    telegram.takes_messages = True
    async with process(tmp_path, server, telegram):
        assert (await telegram.said(3))[2]["text"] == "the answer"
    assert len(server.requests) == 1


async def test_killed_at_any_time_every_message_runs_once_and_is_answered(tmp_path, model, telegram, pair_first):
    server = await model(lambda request: text(f"answer to {request.messages[-1]['content']}"))
    await pair_first(server)
    said = [f"message {number}" for number in range(4)]
    for number, message in enumerate(said):
        async with process(tmp_path, server, telegram):
            await telegram.write(message)
            await asyncio.sleep(0.08 * number)  # not a wait for anything: the moment of the kill
    async with serving(tmp_path, server.openai_url, telegram.url) as house:
        await telegram.write("the last one")
        while answers(telegram)[-1:] != ["answer to the last one"]:
            await telegram.said(len(telegram.sent) + 1)
        assert Counter(await house.inputs()) == Counter([*said, "the last one"])
        owed = house.channels.listing().paired[0].undelivered
    told = Counter(answers(telegram))
    missing = [message for message in said if not told[f"answer to {message}"]]
    assert len(missing) <= told[INTERRUPTED] + told[HELD]
    assert owed <= 1, "at most the last one, if it is not known yet that it has arrived"


@pytest.fixture
def cut_off(tmp_path, model, telegram):
    """`await cut_off(server, message)`: what a crash leaves behind between two writes about this message.

    It is on disk that an answer is owed, and not that its prompt was accepted.
    """

    async def cut_off(server, message):
        async with serving(tmp_path, server.openai_url, telegram.url) as house:
            chat = Chat(telegram, house)
            await chat.pair()
            await chat.say("message 2")
        store = PeerStore(tmp_path / "home" / "channels.json")
        (peer,) = store.peers.values()
        key = _key(peer.address, {"message_id": message})
        about = {"chat_id": 7, "message_id": message}
        store.deliveries = {key: Delivery(key, "telegram", "7", about, peer.session)}
        store.peers[peer.address] = peer.having_seen(key)
        await store.save()

    return cut_off


async def test_a_message_of_which_only_the_debt_was_written_down_runs_when_it_comes_again(
    tmp_path, model, telegram, cut_off
):
    server = await model(text("one"), text("two"))
    await cut_off(server, message=3)
    async with serving(tmp_path, server.openai_url, telegram.url) as house:
        assert not house.channels.listing().paired[0].undelivered
        assert await Chat(telegram, house).say("message 3") == "two"


async def test_an_answer_that_was_not_recorded_is_found_in_the_journal(tmp_path, model, telegram, cut_off):
    server = await model(text("one"))
    await cut_off(server, message=2)
    async with serving(tmp_path, server.openai_url, telegram.url):
        assert [one["text"] for one in (await telegram.said(4))[2:]] == ["one", "one"]
    assert len(server.requests) == 1
