"""Several clients on one session: they come at any moment, see the same, and cost each other nothing."""

import asyncio
import json
import logging
import random
import socket

import pytest

from zotd.testing.script import CallPart, Gate, Hang, ScriptedReply, TextPart, calls, text
from zotd.wire.content import Tokens

COMERS = 20
TIMES = 10
"""How often each of them attaches."""

STEPS = 60
"""Of the run that they come into; each step commits seven events."""


def long_run(steps=STEPS):
    """Steps with a text in pieces and a call, and an end."""
    some = [ScriptedReply([TextPart([f"{n} ", *"abcdefgh"]), CallPart("glob", {"pattern": "*"})]) for n in range(steps)]
    return [*some, text("over")]


def committed(frames):
    return [frame for frame in frames if "seq" in frame and frame["type"] != "replay_complete"]


async def come_and_go(house, talk, chance):
    """Follow a run to its end over connections that break; everything that came, in its order."""
    found: list[dict[str, object]] = []
    times = 0
    while not (found and found[-1]["type"] == "done"):
        client = await house.connect()
        seq = found[-1]["seq"] if found else 0
        await client.ask("attach", session=talk.id, after={"epoch": talk.epoch, "seq": seq})
        times += 1
        left = chance.randrange(1, 60) if times < TIMES else None
        while left != 0 and not (found and found[-1]["type"] == "done"):
            found += committed([await client.event()])
            left = None if left is None else left - 1
        client.cut()
    return found


async def look_in(house, talk, chance):
    """Attach again and again; each snapshot with what came after it."""
    found = []
    for _ in range(TIMES):
        client = await house.connect()
        for _ in range(chance.randrange(20)):
            await client.ask("ping")
        snapshot = await client.ask("attach", session=talk.id)
        events = [await client.event() for _ in range(chance.randrange(2, 60)) if snapshot["run"]]
        found.append((snapshot, events))
        client.cut()
    return found


def texts_are_whole(snapshot, events):
    """The partial text of the snapshot and the deltas after it are the message that follows."""
    said = snapshot["run"]["partial"]["text"] if snapshot["run"] else ""
    for event in events:
        if event["type"] == "text_delta":
            said += event["delta"]
        elif event["type"] == "assistant_message":
            # Deltas that the replay overtook are not sent; their message is.
            if said not in {"", event["content"][0]["text"]}:
                return False
            said = ""
    return True


async def test_a_snapshot_has_the_size_of_the_context_until_it_is_cleared(house, model):
    talk = await house.create("openai", await model(text("one", usage=Tokens(input=30, output=4))))
    assert (await talk.ask("attach"))["context"] == 0
    await talk.ask("prompt", message="go")
    await talk.until("done")
    assert (await talk.ask("attach"))["context"] == 34
    await talk.ask("clear")
    assert (await talk.ask("attach"))["context"] == 0


async def test_clients_that_come_at_any_moment_miss_nothing_and_see_nothing_twice(house, model):
    chance = random.Random(7)
    talk = await house.create("openai", await model(*long_run()))
    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(come_and_go(house, talk, chance)) for _ in range(COMERS // 2)]
        await talk.ask("prompt", message="go")
        lookers = [tasks.create_task(look_in(house, talk, chance)) for _ in range(COMERS // 2)]
        whole = committed(await talk.until("done"))
    assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
    for follower in followers:
        assert follower.result() == whole
    looks = [look for looker in lookers for look in looker.result()]
    for snapshot, events in looks:
        after = committed(events)
        assert after == whole[snapshot["seq"] :][: len(after)]
        assert texts_are_whole(snapshot, events), (snapshot["run"], events)
    assert len({snapshot["seq"] for snapshot, _ in looks}) > COMERS / 2  # they did come at different moments


async def test_a_snapshot_shows_the_reply_that_is_arriving(house, model, vendor):
    gate = asyncio.Event()
    server = await model(
        ScriptedReply([TextPart(["Once ", "upon"]), CallPart("write", {"path": "x", "content": "y"}), Gate(gate)])
    )
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("tool_use_args")
    late = await house.follow(talk.id)
    run = late.snapshot["run"]
    assert (run["step"], run["partial"]["text"]) == (1, "Once upon")
    assert [use["name"] for use in run["partial"]["tool_uses"]] == ["write"]
    assert late.snapshot["session"]["state"] == "running"
    await talk.ask("abort")
    gate.set()
    assert [event["type"] for event in await late.until("done")][-2:] == ["turn_end", "done"]


@pytest.mark.parametrize(("epoch", "seq", "reason"), [("another", 1, "epoch"), (None, 9_999, "future")])
async def test_a_cursor_that_is_not_valid_here_gets_a_snapshot_with_the_reason(house, model, epoch, seq, reason):
    talk = await house.create("openai", await model(text("hi")))
    await talk.run()
    late = await house.follow(talk.id, after={"epoch": epoch or talk.epoch, "seq": seq})
    assert (late.snapshot["mode"], late.snapshot["reason"]) == ("snapshot", reason)
    assert [message["role"] for message in late.snapshot["messages"]] == ["user", "assistant"]
    assert late.snapshot["seq"] == late.snapshot["messages"][-1]["seq"] + 2


@pytest.mark.parametrize("cursor", [{"epoch": "e"}, {"epoch": "e", "seq": "1"}, {"epoch": "e", "seq": 1.5}, 7])
async def test_an_invalid_cursor_is_a_bad_request(house, model, cursor):
    talk = await house.create("openai", await model())
    assert await talk.refused("attach", after=cursor) == "bad_request"


async def test_history_comes_in_pages_that_join_without_a_seam(house, model, look):
    talk = await house.create("openai", await model(*long_run(20)))
    await talk.run()
    late = await house.follow(talk.id, limit=7)
    pages, more = [late.snapshot["messages"]], late.snapshot["has_more"]
    while more:
        page = await late.ask("session.history", before=pages[0][0]["seq"], limit=7)
        pages.insert(0, page["messages"])
        more = page["has_more"]
    messages = [message for page in pages for message in page]
    assert [message["role"] for message in messages] == ["user", *["assistant", "tool"] * 20, "assistant"]
    assert len(pages) == -(-len(messages) // 7)


async def test_attaching_again_starts_over_and_nothing_comes_twice(house, model):
    server = await model(
        *[calls(CallPart("bash", {"command": "head -c 40000 /dev/zero | tr '\\0' x"}))] * 30, text("over")
    )
    talk = await house.create("openai", server)
    await talk.run()
    client = await house.connect()
    cursor = {"epoch": talk.epoch, "seq": 0}
    first, second = (client.send("attach", session=talk.id, after=cursor) for _ in range(2))
    await client.answer_to(second)
    seen = len(client.seen)
    while client.seen[-1]["type"] != "replay_complete":
        await client.frame()
    answered = [frame.get("id") for frame in client.seen[:seen]]
    assert first in answered
    seqs = [frame["seq"] for frame in client.seen[seen:] if frame["type"] not in {"replay_complete", "presence"}]
    assert seqs == list(range(1, client.seen[-1]["seq"] + 1))
    await client.ask("ping")
    assert client.seen[-1]["type"] == "response"


async def test_after_detaching_nothing_more_comes(house, model):
    talk = await house.create("openai", await model(text("hi")))
    second = await house.follow(talk.id)
    await second.ask("detach")
    await talk.run()
    await second.client.ask("ping")
    assert not [frame for frame in second.client.seen if frame["type"] == "user_message"]


async def test_everybody_sees_who_is_there(house, model):
    talk = await house.create("openai", await model(), client=await house.connect(client={"name": "a", "kind": "tui"}))
    second = await house.follow(talk.id, await house.connect(client={"name": "b", "kind": "editor"}))
    seen: list[dict[str, object]] = []
    while [client["name"] for client in seen] != ["a", "b"]:
        seen = (await talk.client.until("presence"))[-1]["clients"]
    assert [client["kind"] for client in (await talk.ask("presence"))["clients"]] == ["tui", "editor"]
    second.client.cut()
    while [client["name"] for client in seen] != ["a"]:
        seen = (await talk.client.until("presence"))[-1]["clients"]


# --- clients that leave, or do not read -------------------------------------------------------------------------------


async def test_work_continues_when_every_client_has_left(house, model, vendor):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["a"]), Gate(gate), TextPart(["b"])]))
    talk = await house.create(vendor, server)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    talk.client.cut()
    gate.set()
    late = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": 0})
    while not any(frame["type"] == "done" for frame in late.client.seen):
        await late.client.event()
    assert (await late.texts())[-1] == ("assistant", ["ab"])


async def test_an_ephemeral_session_ends_with_its_last_client_and_leaves_nothing(house, model):
    server = await model(text("hi"))
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    talk = await house.create("openai", server, ephemeral=True)
    await talk.run("remember the walrus")
    second = await house.follow(talk.id)
    talk.client.cut()
    assert await second.state() == "idle"
    second.client.cut()
    await watcher.until("session_removed")
    assert await watcher.refused("get_state", session=talk.id) == "not_found"
    assert (await watcher.ask("session.list"))["sessions"] == []
    assert b"walrus" not in b"".join(path.read_bytes() for path in house.place.home.glob("zot.db*"))


async def test_an_ephemeral_session_outlives_its_client_until_its_run_is_over(house, model):
    gate = asyncio.Event()
    server = await model(ScriptedReply([TextPart(["a"]), Gate(gate)]))
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    talk = await house.create("openai", server, ephemeral=True)
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    talk.client.cut()
    late = await house.follow(talk.id)
    late.client.cut()
    assert (await watcher.ask("session.list"))["sessions"][0]["state"] == "running"
    gate.set()
    await watcher.until("session_removed")


class CutNotice(logging.Handler):
    """Tells when the daemon has cut somebody."""

    def __init__(self):
        super().__init__()
        self.came = asyncio.Event()

    def emit(self, record):
        if "was cut" in record.getMessage():
            self.came.set()


@pytest.fixture
def cut_notice():
    notice, logger = CutNotice(), logging.getLogger("zotd.api.connection")
    logger.addHandler(notice)
    yield notice
    logger.removeHandler(notice)


async def stalled_on(house, session_id):
    """A client that attaches and then reads nothing."""
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, house.place.socket)
    await loop.sock_sendall(sock, json.dumps({"type": "attach", "session": session_id}).encode() + b"\n")
    return sock


async def read_all(sock, once):
    """All that is on its way to a client that begins to read at `once`."""
    await once.wait()
    loop, data = asyncio.get_running_loop(), b""
    try:
        while chunk := await loop.sock_recv(sock, 1 << 20):
            data += chunk
    except ConnectionResetError:
        pass
    return data


PIECE = '"' * 100_000
"""Twice as long in JSON, so that the longest reply exceeds the limit without its last frame."""

FLOODS = {"the client read nothing": 8, "MiB were waiting": 20}
"""Deltas: fewer than are cut at once, and more; few and long ones, so that they come long before the 3 s are over."""


@pytest.mark.parametrize("reason", FLOODS)
async def test_a_client_that_does_not_read_is_disconnected_with_the_reason_and_no_other_loses_anything(
    house, model, cut_notice, reason
):
    server = await model(ScriptedReply([TextPart([PIECE] * FLOODS[reason])], joined=True), text("after"))
    talk = await house.create("openai", server)
    with await stalled_on(house, talk.id) as sock:
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            # From the cut on it has half a second to read, and that may be in the middle of the run.
            told = tasks.create_task(read_all(sock, cut_notice.came))
            events = await talk.run()
    lines = [json.loads(line) for line in told.result().splitlines()]
    deltas = [event["delta"] for event in events if event["type"] == "text_delta"]
    assert "".join(deltas) == PIECE * FLOODS[reason]
    assert lines[-1]["type"] == "evicted"
    assert reason in lines[-1]["reason"]
    seqs = [line["seq"] for line in lines if "seq" in line and line["type"] != "replay_complete"]
    assert lines[-1]["last_seq"] == max(seqs, default=0)
    late = await house.follow(talk.id, after={"epoch": talk.epoch, "seq": lines[-1]["last_seq"]})
    assert late.snapshot["mode"] == "resumed"
    got = [frame for frame in late.client.seen if "seq" in frame and frame["type"] != "replay_complete"]
    assert [*seqs, *(frame["seq"] for frame in got)] == [event["seq"] for event in events if "seq" in event]


async def test_a_hanging_run_can_be_left_and_found_again(house, model):
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["a"]), Hang()])))
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    talk.client.cut()
    late = await house.follow(talk.id)
    assert late.snapshot["run"]["partial"]["text"] == "a"
    await late.ask("abort")
    await late.until("done")
