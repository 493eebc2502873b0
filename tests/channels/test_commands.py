"""`zotctl channel` against the real door of a daemon."""

import asyncio
import json

import pytest

from tests.channels.house import ENV
from zotd.api.context import DaemonContext, DoorStatus
from zotd.api.dispatch import Dispatcher
from zotd.api.methods import daemon_handlers
from zotd.api.unix import Socket, UnixServer
from zotd.store.archive import Archive
from zotd.tasks import contained
from zotd.testing import warm


class Shell:
    """Runs `zotctl channel` beside a chat whose user 7 is a stranger."""

    def __init__(self, chat, socket):
        self.chat = chat
        self._socket = socket

    async def run(self, *words):
        """Exit code, output, complaint."""
        process = await asyncio.create_subprocess_exec(
            *warm.command("zotctl", "channel", *words),
            env={**ENV, "ZOTD_SOCKET": self._socket},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


@pytest.fixture
async def shell(stack, tmp_path, open_chat, model):
    chat = await open_chat(await model(), paired=False)
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    socket = Socket(tmp_path / "zotd.sock")
    stack.callback(socket.close)

    def spawn(name, work):
        contained(tasks, name, work)

    house = DaemonContext(
        manager=chat.house.manager,
        spawn=spawn,
        archive=Archive(chat.house.journal.database),
        epoch="e",
        doors=DoorStatus(str(tmp_path / "zotd.sock")),
        stop=lambda _: None,
        drain=lambda: None,
        changed=lambda: None,
        channels=chat.house.channels,
    )
    server = UnixServer(house, Dispatcher(chat.house.manager, daemon_handlers(house)))
    server.start(socket)
    stack.callback(server.close)

    return Shell(chat, str(tmp_path / "zotd.sock"))


async def test_a_sender_is_let_in_listed_and_sent_away(shell):
    code = (await shell.chat.say("hello")).split()[-1]
    assert "7 on telegram received a pairing code" in (await shell.run("list"))[1]
    assert await shell.run("pair", code) == (0, "7 on telegram may now send prompts\n", "")

    listed = json.loads((await shell.run("list", "--json"))[1])
    assert (listed["v"], listed["waiting"]) == (1, [])
    assert [one["name"] for one in listed["channels"]] == ["telegram"]
    assert [(one["channel"], one["sender"]) for one in listed["paired"]] == [("telegram", "7")]

    gone = json.loads((await shell.run("unpair", "telegram", "7", "--json"))[1])
    assert gone == {"v": 1, "channel": "telegram", "sender": "7"}
    assert not shell.chat.house.channels.listing().paired


async def test_what_cannot_be_done_is_said(shell):
    status, out, complaint = await shell.run("pair", "AAAA-AAAA")
    assert (status, out) == (1, "")
    assert complaint.startswith("zotctl: no sender received this code in the last 10 minutes")
    assert "is not paired" in (await shell.run("unpair", "telegram", "7"))[2]
