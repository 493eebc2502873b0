"""Channels that users write: their process beside ours, and what `recv` may rely on."""

import asyncio
import json
import sys
import textwrap
from pathlib import Path

import pytest

import zotd
from tests.channels.house import serving
from zotd.testing.ext_driver import ExtensionDriver
from zotd.testing.script import text

WAIT_S = 30.0

HOST_PROGRAM = Path(zotd.__file__).parent / "sdk" / "modules"

SOURCE = """
    '''A platform that listens on a Unix socket in the working directory.'''
    import asyncio, json
    from types import SimpleNamespace

    async def connect():
        global reader, writer
        reader, writer = await asyncio.open_unix_connection("platform")

    async def recv():
        return SimpleNamespace(**{"channel": "", "metadata": None, **json.loads(await reader.readline())})

    async def send(message):
        answer = [message.channel, message.sender, message.text, message.metadata]
        writer.write(json.dumps(answer).encode() + b"\\n")
    """


@pytest.fixture
def write(tmp_path):
    """`write(source)`: the file of the channel `pair`."""

    def write(source, folder="home/extensions"):
        directory = tmp_path / folder / "channels"
        directory.mkdir(parents=True, exist_ok=True)
        draft = directory / "pair.draft"
        draft.write_text(textwrap.dedent(source))
        draft.rename(directory / "pair.py")

    return write


class Platform:
    """The outside world, with one person in it."""

    def __init__(self):
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.writer: asyncio.StreamWriter | None = None
        self.connected = asyncio.Event()

    async def serve(self, reader, writer):
        self.writer = writer
        self.connected.set()
        while line := await reader.readline():
            self.lines.put_nowait(line)
        writer.close()

    async def say(self, sender, text, **fields):
        async with asyncio.timeout(WAIT_S):
            await self.connected.wait()
        assert self.writer is not None
        self.writer.write(json.dumps({"sender": sender, "text": text, **fields}).encode() + b"\n")

    async def hear(self):
        async with asyncio.timeout(WAIT_S):
            return json.loads(await self.lines.get())


@pytest.fixture
async def platform(stack, tmp_path):
    """Listens before there is a house."""
    place = tmp_path / "home" / "data" / "py-pair"
    place.mkdir(parents=True)
    found = Platform()
    await stack.enter_async_context(await asyncio.start_unix_server(found.serve, place / "platform"))
    return found


async def test_three_functions_are_a_channel(stack, tmp_path, model, write, platform):
    write(SOURCE)
    server = await model(text("hi Ada"), text("hi room"))
    house = await stack.enter_async_context(serving(tmp_path, server.openai_url))

    async def let_in(*, channel):
        heard = await platform.hear()
        assert heard[:2] == [channel, "ada"]
        await house.channels.pair(heard[2].split()[-1])
        return await platform.hear()

    await platform.say("ada", "hello", metadata={"thread": 3})
    assert (await let_in(channel="pair"))[3] == {"thread": 3}
    await platform.say("ada", "hello", metadata={"thread": 4})
    assert await platform.hear() == ["pair", "ada", "hi Ada", {"thread": 4}]
    await platform.say("ada", "hello", channel="#room")
    await let_in(channel="#room")
    await platform.say("ada", "hello", channel="#room")
    assert (await platform.hear())[:3] == ["#room", "ada", "hi room"]
    assert [one.channel for one in house.channels.listing().paired] == ["pair", "pair/#room"]


async def test_a_message_that_comes_again_is_answered_once(stack, tmp_path, model, write, platform):
    write(SOURCE)
    server = await model(text("once"), text("twice"))
    house = await stack.enter_async_context(serving(tmp_path, server.openai_url))
    await platform.say("ada", "hello")
    await house.channels.pair((await platform.hear())[2].split()[-1])
    await platform.hear()
    for message in (1, 1, 2):
        await platform.say("ada", "hello", metadata={"message_id": message})
    assert [(await platform.hear())[2:] for _ in "12"] == [["once", {"message_id": 1}], ["twice", {"message_id": 2}]]


async def test_a_file_that_does_not_load_is_listed_with_its_error(stack, tmp_path, model, write):
    write("def recv(): ...")
    house = await stack.enter_async_context(serving(tmp_path, (await model()).openai_url))
    await house.host.wait_ready(10)
    (channel,) = house.channels.listing().channels
    assert (channel.name, channel.state) == ("pair", "broken")
    assert channel.error == "pair.py does not define connect(), send(): a channel has connect, recv and send"


ASKED = """
    from types import SimpleNamespace
    import pathlib

    count = 0

    async def connect():
        pass

    async def recv():
        global count
        count += 1
        return SimpleNamespace(text=str(count), sender="me", channel="", metadata=None)

    async def send(message):
        pass
    """


@pytest.fixture
def driver(stack, tmp_path, write):
    write(ASKED, ".")
    argv = [sys.executable, HOST_PROGRAM, tmp_path, "--channel", "pair"]
    return stack.enter_context(ExtensionDriver(argv, tmp_path))


def test_the_next_message_is_asked_for_when_the_host_has_the_one_before(driver):
    driver.greet(features=["channel_accepted"])
    first = driver.expect("channel_message")
    driver.send("channel_accepted", id="of another process")
    driver.request("channel_send", channel="pair", sender="me", text="")
    driver.expect("channel_sent")
    assert not [frame for frame in driver._unread if frame["type"] == "channel_message"]
    driver.send("channel_accepted", id=first["id"])
    assert driver.expect("channel_message")["text"] == "2"


def test_a_host_that_says_nothing_is_not_waited_for(driver):
    driver.greet()
    assert [driver.expect("channel_message")["text"] for _ in range(3)] == ["1", "2", "3"]
