"""Which editor is asked for a terminal, and what becomes of a request without an answer."""

import asyncio

import pytest

from zotd.core.editor_terminals import TerminalEnd
from zotd.sessions.client_terminals import GONE, ClientTerminals
from zotd.wire.api import TerminalAnswer
from zotd.wire.errors import CommandError
from zotd.wire.events import TerminalRequest


@pytest.fixture
def told():
    return []


@pytest.fixture
def terminals(told):
    return ClientTerminals("s_1", told.append)


@pytest.fixture
def asked(terminals):
    """What the client `k_1` is asked, which has offered its terminals."""
    asked: list[TerminalRequest] = []
    terminals.offer("k_1", asked.append)
    return asked


def opened(terminals):
    return terminals.open("c_1", ["make", "all"], cwd="/src", output_bytes=7)


def answer(asked, **more):
    return TerminalAnswer(session="s_1", request=asked[-1].id, **more)


async def test_the_client_that_offered_last_is_asked(terminals, asked):
    newer: list[TerminalRequest] = []
    terminals.offer("k_2", newer.append)
    opened(terminals)
    request = newer[0]
    assert (request.action, request.call, request.command, request.args) == ("run", "c_1", "make", ["all"])
    assert (request.cwd, request.output_bytes, request.session) == ("/src", 7, "s_1")
    terminals.withdraw("k_2")
    opened(terminals)
    assert len(asked) == len(newer) == 1


async def test_the_answer_says_how_the_command_has_ended(terminals, asked):
    terminal, seen = opened(terminals), asyncio.Event()
    terminal.watch(seen.set)
    terminals.answer("k_1", answer(asked, output="x", truncated=True, exit_code=3))
    assert await terminal.ended() == TerminalEnd("x", True, 3)
    await seen.wait()
    terminal.kill()
    assert len(asked) == 1


async def test_a_client_that_leaves_does_not_say_how_it_has_ended(terminals, asked):
    terminal = opened(terminals)
    terminals.withdraw("k_1")
    assert await terminal.ended() == GONE
    assert terminals.offers == {}


async def test_a_kill_names_the_request(terminals, asked):
    opened(terminals).kill()
    run, kill = asked
    assert (kill.action, kill.id, kill.call) == ("kill", run.id, "c_1")


async def test_a_client_that_was_given_up_is_not_asked_again_and_people_are_told_once(terminals, asked, told):
    terminal = opened(terminals)
    terminal.give_up("says: no")
    terminal.give_up("says: no")
    assert terminals.offers == {}
    assert told == ["the editor says: no; commands run outside of its terminals until it opens the session again"]


async def test_only_the_client_that_was_asked_can_answer_and_only_once(terminals, asked):
    opened(terminals)
    for client, given in (("k_2", answer(asked)), ("k_1", TerminalAnswer(session="s_1", request="t_0"))):
        with pytest.raises(CommandError, match="no open request"):
            terminals.answer(client, given)
    terminals.answer("k_1", answer(asked, error="no"))
    with pytest.raises(CommandError, match="no open request"):
        terminals.answer("k_1", answer(asked))
