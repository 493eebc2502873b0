"""Deliveries against a channel whose part the test plays."""

import asyncio

import pytest

from zotd.channels.outbox import TRIES, ReplyQueue
from zotd.channels.state import Correspondent, Delivery, PeerStore
from zotd.tasks import contained
from zotd.wire import ext


class Process:
    """What was sent to it, and how it answers."""

    def __init__(self):
        self.frames: asyncio.Queue[ext.ChannelSend] = asyncio.Queue()
        self.is_there = True

    def send(self, extension, frame):
        del extension
        if self.is_there:
            self.frames.put_nowait(frame)
        return self.is_there

    async def next(self):
        async with asyncio.timeout(60):
            return await self.frames.get()


class Post:
    """An outbox with what is around it."""

    def __init__(self, path, tasks):
        self.path = path
        self.process = Process()
        self.store = PeerStore(path)
        self.store.peers[Correspondent("chat", "7", "").address] = Correspondent("chat", "7", "")
        self.running: list[asyncio.Task[None]] = []
        self.outbox = ReplyQueue(self.store, send=self.process.send, spawn=self.spawn, delay_s=0)
        self._tasks = tasks

    def spawn(self, name, work):
        self.running.append(contained(self._tasks, name, work))

    def put(self, text, channel="chat", **fields):
        delivery = Delivery(text, channel, "7", text=text, **fields)
        self.store.deliveries[delivery.key] = delivery
        self.outbox.put(delivery)


@pytest.fixture
async def post(tmp_path):
    async with asyncio.TaskGroup() as tasks:
        post = Post(tmp_path / "channels.json", tasks)
        yield post
        for task in post.running:
            task.cancel()


async def finished(post):
    async with asyncio.timeout(60):
        await asyncio.wait(post.running)


async def test_answers_wait_for_their_channel_and_go_out_one_after_the_other(post):
    post.put("one", metadata={"thread": 1})
    post.put("two")
    assert post.process.frames.empty()
    post.outbox.up("chat", "py-chat")
    first = await post.process.next()
    assert (first.channel, first.sender, first.text, first.metadata) == ("chat", "7", "one", {"thread": 1})
    assert post.process.frames.empty(), "the second waits for the first"
    post.outbox.answered(ext.ChannelSent(first.id))
    second = await post.process.next()
    post.outbox.answered(ext.ChannelSent(second.id))
    await finished(post)
    assert not PeerStore(post.path).deliveries


async def test_a_room_is_told_to_its_channel(post):
    post.outbox.up("chat", "py-chat")
    post.put("one", channel="chat/#room")
    assert (await post.process.next()).channel == "#room"


async def test_what_fails_is_tried_again_and_late_answers_count_for_nothing(post):
    post.outbox.up("chat", "py-chat")
    post.put("one")
    first = await post.process.next()
    post.outbox.answered(ext.ChannelSent(first.id, "not now"))
    second = await post.process.next()
    post.outbox.answered(ext.ChannelSent(first.id))
    assert second.id != first.id
    assert PeerStore(post.path).deliveries["one"].tries == 1
    post.outbox.lost("chat")
    third = await post.process.next()
    post.outbox.answered(ext.ChannelSent(third.id))
    await finished(post)


async def test_a_message_that_is_always_refused_is_dropped_and_blocks_no_other(post):
    post.process.is_there = False
    post.outbox.up("chat", "py-chat")
    post.put("one", tries=TRIES - 2)
    await finished(post)
    assert not post.store.deliveries
    post.process.is_there = True
    post.put("two")
    assert (await post.process.next()).text == "two"


async def test_an_answer_that_is_too_long_is_cut_and_says_so(post):
    post.outbox.up("chat", "py-chat")
    post.put("x" * 300_000)
    sent = (await post.process.next()).text
    assert (len(sent), sent.endswith("(cut: the whole answer is in the session)")) == (200_000, True)


async def test_nothing_goes_to_a_sender_who_was_unpaired(post):
    post.put("one")
    post.store.deliveries.clear()
    post.outbox.up("chat", "py-chat")
    await finished(post)
    assert post.process.frames.empty()
