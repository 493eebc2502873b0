"""Tools that a server runs as tasks."""

import json

import pytest

from tests.bridges.conftest import program
from zotd.testing.ext_driver import text_of


@pytest.fixture
def server(start):
    return start(program("task_server"))


def begin(driver, tool, session="s_1"):
    return driver.request("tool_call", name=f"srv__{tool}", args={}, session_id=session)


def cancelled(driver):
    return json.loads(text_of(driver.call_tool("srv__cancelled")))


def test_the_state_of_a_task_is_shown_until_its_result_is_there(server):
    call = begin(server, "steps")
    told = []
    while (frame := server.receive())["type"] == "tool_progress":
        told.append(frame["text"])
    assert (frame["id"], text_of(frame)) == (call, "steps are done")
    assert [text for text in told if "of two" in text] == ["one of two", "two of two"]
    assert (told[0], "1 of the server" in told) == ("working", True)
    assert cancelled(server) == []


def test_a_server_is_told_how_long_to_keep_a_task_and_may_answer_at_once(server):
    assert json.loads(text_of(server.call_tool("srv__at_once"))) == {"ttl": 6 * 3600 * 1000, "meta": ["progressToken"]}


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("fails", "it has failed"),
        ("fails_in_words", "no paper left"),
        ("given_up", "the MCP server has cancelled the task: the printer is sold"),
        ("wrong", "the MCP server's result cannot be used: "),
    ],
)
def test_a_task_that_ends_without_a_good_result_is_an_error_that_says_why(server, tool, why):
    result = server.call_tool(f"srv__{tool}")
    assert (result["is_error"], text_of(result)[: len(why)]) == (True, why)
    assert cancelled(server) == []


def test_a_call_that_is_cancelled_cancels_its_task(server):
    call = begin(server, "endless")
    server.expect("tool_progress", id=call)
    server.send("tool_cancel", id=call)
    assert text_of(server.expect("tool_result", id=call)) == "cancelled"
    assert cancelled(server) == ["endless"]


def test_a_task_whose_state_is_unknown_is_cancelled_and_the_call_fails(server):
    result = server.call_tool("srv__forgotten")
    assert (result["is_error"], text_of(result)) == (True, "there is no such task")
    assert cancelled(server) == ["forgotten"]


def test_a_task_that_asks_is_answered_in_its_own_session(server):
    other = begin(server, "endless", "s_2")
    call = begin(server, "asks")
    server.expect("tool_progress", id=other)
    question = server.expect("ask_user", tool_call=call)
    assert (question["message"], question["fields"]) == ("asks", {"action": ""})
    server.send("user_answer", id=question["id"], action="accept", values={"action": "go"})
    assert text_of(server.expect("tool_result", id=call)) == "I go"
    assert cancelled(server) == []


def test_a_task_that_gets_no_answer_fails_as_the_server_says(server):
    call = begin(server, "asks_and_fails")
    question = server.expect("ask_user", tool_call=call)
    server.send("user_answer", id=question["id"], action="decline", values={})
    result = server.expect("tool_result", id=call)
    assert (result["is_error"], text_of(result)) == (True, "told to decline")


def test_a_task_is_cancelled_when_the_server_is_no_longer_needed(server):
    call = begin(server, "endless")
    server.expect("tool_progress", id=call)
    assert server.shut_down() == 0
    assert "endless was cancelled" in server.log()
