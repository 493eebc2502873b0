"""Output for a client that does not read: bounded and merged without loss."""

import asyncio
import json

import pytest

from zotd.api import outbox
from zotd.api.outbox import LiveBatch, Outbox
from zotd.wire import events


class Full(asyncio.WriteTransport):
    """A transport whose peer reads nothing, so that the first write pauses the outbox."""

    def __init__(self):
        super().__init__()
        self.written = []

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def is_closing(self):
        return False

    def write(self, data):
        self.written.append(bytes(data))


@pytest.fixture
def stalled():
    """`stalled(cut)`: an outbox with a paused transport."""
    made = []

    def stalled(cut):
        box = Outbox(Full(), cut=cut)
        box.pause()
        made.append(box)
        return box

    yield stalled
    for box in made:
        box.close()


def deltas(*texts):
    return [events.TextDelta(text, session="s_1") for text in texts]


def lines(data):
    return [json.loads(line) for line in data.splitlines()]


def test_adjacent_deltas_of_one_item_are_merged():
    batch = LiveBatch()
    batch.add(deltas("On", "ce "))
    batch.add([events.ToolUseArgs("c_1", '{"a"', session="s_1"), events.ToolUseArgs("c_1", ":1}", session="s_1")])
    batch.add([events.ToolUseArgs("c_2", "{}", session="s_1"), *deltas("upon"), *deltas("\r\n", "\u2028é")])
    told = [(frame["type"], frame["delta"]) for frame in lines(batch.encode())]
    assert told == [
        ("text_delta", "Once "),
        ("tool_use_args", '{"a":1}'),
        ("tool_use_args", "{}"),
        ("text_delta", "upon\r\n\u2028é"),
    ]


def test_thinking_and_text_are_merged_separately():
    batch = LiveBatch()
    batch.add([*(events.ThinkingDelta(text, session="s_1") for text in ("H", "m")), *deltas("y", "es")])
    assert [(frame["type"], frame["delta"]) for frame in lines(batch.encode())] == [
        ("thinking_delta", "Hm"),
        ("text_delta", "yes"),
    ]


@pytest.mark.parametrize("piece", ["x", "é", "漢", "\0", "\x1b[2J", '"'])
def test_the_size_of_a_batch_is_that_of_its_encoding(piece):
    batch = LiveBatch()
    for _ in range(100):
        batch.add(deltas(piece))
    assert batch.size == len(batch.encode())


async def test_a_merged_frame_does_not_exceed_the_frame_limit(stalled):
    reasons: list[str] = []
    box = stalled(reasons.append)
    while not reasons:
        shown = deltas("\0" * 10_000)
        box.write_live(shown, b"")
    box.resume()
    box.flush()
    assert reasons[0] == "more than 2 MiB were waiting"
    assert sum(map(len, box._transport.written)) < 2 * outbox.MAX_BYTES


async def test_events_held_during_a_replay_count_towards_the_limit(stalled):
    reasons: list[str] = []
    box = stalled(reasons.append)
    box.check(outbox.MAX_BYTES)
    assert reasons == []
    box.check(outbox.MAX_BYTES + 1)
    assert reasons == ["more than 2 MiB were waiting"]


async def test_a_frame_as_long_as_the_limit_evicts_no_client_that_lags_a_little(stalled):
    reasons: list[str] = []
    box = stalled(reasons.append)
    box.write_live(deltas("the end of the reply"), b"")
    box.write(b"x" * outbox.MAX_BYTES)
    assert reasons == []
    box.write(b"{}\n")
    assert reasons == ["more than 2 MiB were waiting"]
