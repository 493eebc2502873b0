"""The asyncio client, against a daemon over a real socket."""

import asyncio
import os
from contextlib import aclosing

import pytest

from zotd.client.client import Client
from zotd.client.errors import BusyError, CallError, ConnectionLostError, NoAnswerError, RunFailedError
from zotd.wire import api, events
from zotd.wire.base import encode


@pytest.fixture
async def client(daemon, path):
    async with Client.connect(
        path=path, autostart=False, env={"A": "1", "ZOT_X_TOKEN": "t", "ZOTCORE_Y": "z"}
    ) as found:
        yield found


async def text_of(stream):
    return "".join([event.delta async for event in stream if isinstance(event, events.TextDelta)])


async def test_a_prompt_yields_the_events_of_its_run_up_to_done(client, tmp_path):
    session = await client.create(cwd=str(tmp_path))
    seen = [event async for event in session.prompt("hello")]
    assert [events.tag_of(type(event)) for event in seen] == [
        "user_message", "turn_start", "assistant_start", "text_delta", "usage", "assistant_message", "turn_end", "done",
    ]  # fmt: skip
    assert await text_of(session.prompt("again")) == "again"


async def test_the_environment_is_sent_without_its_secrets(client, daemon, tmp_path):
    session = await client.create(cwd=str(tmp_path))
    assert daemon.sessions[session.id].env == {"A": "1"}
    assert await text_of(session.prompt("env A")) == "1"


async def test_settings_of_a_new_session_are_sent(client, daemon, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    session = await client.create(str(tmp_path / "link"), api_key="k", provider="p", tools=["read"], ephemeral=True)
    params = daemon.sessions[session.id].params
    assert (params.cwd, params.provider, params.tools, params.ephemeral) == (str(tmp_path), "p", ["read"], True)
    assert params.secrets.api_key == "k"


async def test_events_of_sessions_on_one_connection_are_kept_apart(client):
    sessions = [await client.create() for _ in range(5)]
    async with asyncio.TaskGroup() as tasks:
        texts = [tasks.create_task(text_of(s.prompt(f"I am {n}"))) for n, s in enumerate(sessions)]
    assert [text.result() for text in texts] == [f"I am {n}" for n in range(5)]


async def test_a_second_prompt_is_busy_on_the_same_object_and_queued_on_another(client):
    session = await client.create()
    async with aclosing(session.prompt("hang")) as first:
        await anext(first)
        with pytest.raises(BusyError):
            await anext(session.prompt("second"))
        second = client.session(session.id).prompt("second")
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(text_of(second))
            await session.abort()
            rest = [event async for event in first]
    assert isinstance(rest[-1], events.Done)
    assert [event.stop for event in rest if isinstance(event, events.TurnEnd)] == ["aborted"]
    assert waiting.result() == "second"
    assert await text_of(session.prompt("third")) == "third"


async def test_withdrawing_an_input_ends_its_prompt_with_an_error(client):
    session = await client.create()
    async with aclosing(session.prompt("hang")) as first:
        await anext(first)
        with client.connection.feed(session.id) as feed:
            async with asyncio.TaskGroup() as tasks:
                second = tasks.create_task(collect(client.session(session.id).prompt("second")))
                queued = await next_of(feed, events.QueueChanged)
                await client.call(api.QueueWithdraw(session=session.id, input=queued.items[0].id))
                await session.abort()
    assert isinstance(second.result(), RunFailedError)


async def collect(stream):
    try:
        return [event async for event in stream]
    except RunFailedError as error:
        return error


async def next_of(feed, kind):
    while True:
        for event in await feed.batch():
            if isinstance(event, kind):
                return event


async def test_compact_waits_for_its_summary(client):
    session = await client.create()
    assert await session.compact("short") == "all of it"


async def test_the_typed_commands_of_a_session(client):
    session = await client.create()
    assert (await session.set_model("fake-2")).model == "fake-2"
    assert (await session.state()).provider == "fake"
    assert (await session.usage()).output == 2
    assert [model.id for model in await session.models()] == ["fake-1"]
    async with aclosing(session.prompt("hello")) as stream:
        async for _ in stream:
            pass
    assert [message.role for message in await session.messages()] == ["user", "assistant"]
    assert [info.id for info in await client.sessions(cwd=".")] == [session.id]
    assert await client.sessions(cwd="/") == []
    await session.close()
    with pytest.raises(CallError) as caught:
        await session.state()
    assert caught.value.code == "not_found"


async def test_a_list_of_sessions_is_read_page_by_page(client):
    made = [(await client.create()).id for _ in range(101)]
    assert [info.id for info in await client.sessions()] == made[::-1]


async def test_any_command_of_the_table_can_be_called_by_its_parameters(client):
    session = await client.create()
    answer = await client.call(api.SetModel(session=session.id, model="m"))
    assert answer == api.ModelName("m")
    with pytest.raises(ValueError, match="name one of"):
        await client.call(api.OfSession(session.id))
    assert await client.call(api.OfSession(session.id), command="session.get") == await client.ask(
        api.OfSession(session.id), api.SessionInfo, command="session.get"
    )
    with pytest.raises(ValueError, match="does not take"):
        await client.call(api.OfSession(session.id), command="prompt")


async def test_a_call_without_a_response_raises_no_answer_error(client, daemon):
    daemon.wedged = True
    with pytest.raises(NoAnswerError, match="`ping`"):
        await client.call(api.Nothing(), command="ping", timeout_s=0.05)


async def test_a_late_answer_is_dropped(client, daemon):
    daemon.wedged = True
    with pytest.raises(NoAnswerError):
        await client.call(api.Nothing(), command="ping", timeout_s=0.05)
    daemon.wedged = False
    peer = daemon.peers[0]
    daemon.do(lambda: peer.send(b'{"type":"response","id":2,"command":"ping","success":true,"data":{"pong":true}}\n'))
    assert await client.call(api.Nothing(), command="ping") == api.Pong(pong=True)


async def test_a_lost_connection_ends_prompts_and_later_calls(client, daemon):
    session = await client.create()
    async with aclosing(session.prompt("hang")) as stream:
        await anext(stream)
        await asyncio.to_thread(daemon.do, daemon.cut_all)
        with pytest.raises(ConnectionLostError):
            async for _ in stream:
                pass
    with pytest.raises(ConnectionLostError):
        await session.state()


async def test_an_eviction_is_reported_with_its_reason(client, daemon):
    session = await client.create()
    peer = daemon.peers[0]
    line = b'{"type":"evicted","reason":"slow","last_seq":1}\n'
    async with aclosing(session.prompt("hang")) as stream:
        await anext(stream)
        await asyncio.to_thread(daemon.do, lambda: (peer.send(line), peer._transport.close()))
        with pytest.raises(ConnectionLostError, match="slow"):
            async for _ in stream:
                pass


async def test_events_of_a_newer_daemon_are_skipped(client, daemon):
    session = await client.create()
    new = b'{"type":"brand_new","session":"%b","seq":1}\n' % session.id.encode()
    known = events.Notice("info", "hi", session=session.id)
    with client.connection.feed(session.id) as feed:
        await asyncio.to_thread(daemon.do, lambda: daemon.peers[0].send(new + encode(known) + b"\n"))
        assert await next_of(feed, events.Notice) == known


async def test_a_flood_of_events_is_received_completely_in_batches(client):
    session = await client.create()
    count = batches = 0
    async with aclosing(session.prompt_batches("many 20000")) as stream:
        async for batch in stream:
            batches += 1
            count += sum(type(event) is events.TextDelta for event in batch)
    assert count == 20_000
    assert batches < 1_000


async def test_hello_introduces_the_client(daemon, path):
    async with Client.connect(path=path, autostart=False, name="me", can_approve=True, role="admin") as client:
        assert client.hello.pid == os.getpid()
        assert client.hello.role == "admin"
    said = daemon.requests[0]
    assert said["client"]["name"] == "me"
    assert (said["can_approve"], said["protocol"]) == (True, [1, 1])
