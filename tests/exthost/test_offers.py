"""Names of tools and commands, and what a command answers."""

import json

import pytest

from tests.exthost.conftest import ABOUT
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.offers import UnknownCommandError


async def test_conflicts_are_settled_by_the_load_order_and_reported(workshop):
    for name in ("b", "a"):
        workshop.acting(name, "good", "same")
    workshop.acting("c", "good", "help")
    workshop.acting("d", "good", "read")
    async with workshop.host() as host:
        assert [(tool.spec.name, tool.extension) for tool in host.offers.tools()] == [("same", "a"), ("help", "c")]
        assert [command.name for command in host.offers.commands()] == ["same", "read", "b:same", "c:help"]
        for name, extension in (("same", "a"), ("B:Same", "b"), ("c:help", "c")):
            assert (await host.offers.invoke(name, " x ", about=ABOUT, client=None))[0] == extension
        with pytest.raises(UnknownCommandError, match="no extension has the command /help"):
            await host.offers.invoke("help", "", about=ABOUT, client=None)
        told = host.doctor()
    assert [one for one in told if "hidden" in one[1]] == [
        ("b", "its tool same is hidden by that of a"),
        ("d", "its tool read is hidden by that of zot"),
        ("b", "its command /same is hidden by that of a; use /b:same"),
        ("c", "its command /help is hidden by that of zot; use /c:help"),
    ]


async def test_a_command_gets_the_line_behind_its_name_and_who_typed_it(workshop):
    source = """
greet()
for frame in frames():
    say({"type": "command_response", "id": frame["id"], "action": "display", "display": json.dumps(frame)})
"""
    workshop.script("x", source)
    async with workshop.host() as host:
        _, response = await host.offers.invoke("x", "  a b ", about=ABOUT, client="k_1")
    sent = json.loads(response.display)
    assert {name: sent[name] for name in ("name", "args", "session_id", "client_id")} == {
        "name": "x",
        "args": "a b",
        "session_id": "s_1",
        "client_id": "k_1",
    }


async def test_a_command_that_is_not_answered_says_so(workshop):
    workshop.acting("deaf", "answers nothing", "deaf")
    async with workshop.host(limits=ExtensionTimeouts(command_s=0.05)) as host:
        _, response = await host.offers.invoke("deaf", "", about=ABOUT, client=None)
    assert response.error == "/deaf failed: deaf did not answer within 0.05 s"
