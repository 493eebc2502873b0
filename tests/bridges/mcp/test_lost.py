"""A server that cannot be reached, or goes away: a sentence, and an exit code that makes the host try again."""

import json

import pytest

from tests.bridges.conftest import LOST, program
from zotd.testing.ext_driver import text_of


def last_line(driver):
    return driver.log().splitlines()[-1]


def test_a_crash_fails_all_calls_and_ends_the_bridge(sample):
    driver = sample()
    waiting = driver.request("tool_call", name="srv__endless", args={})
    driver.expect("tool_progress", id=waiting)
    result = driver.call_tool("srv__crash")
    assert (result["is_error"], text_of(result)) == (True, LOST)
    assert text_of(driver.expect("tool_result", id=waiting)) == LOST
    assert driver.end() == 1
    assert "a word before the end" in driver.log()
    assert last_line(driver) == "the MCP server srv has exited with code 3"


@pytest.mark.usefixtures("cold_bridge")
def test_a_crash_is_noticed_while_a_grandchild_holds_the_pipe(odd):
    driver = odd("held pipe")
    assert text_of(driver.call_tool("srv__hi")) == LOST
    assert driver.end() == 1
    assert last_line(driver) == "the MCP server srv has exited with code 5"


def test_a_server_that_does_not_read_can_be_left(odd):
    driver = odd("deaf")
    driver.request("tool_call", name="srv__hi", args={})
    assert driver.shut_down() == 0


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (program("odd_server", "early exit"), "has exited with code 7"),
        (program("odd_server", "refuses"), "refused the connection: no seat left"),
        ({"command": "no-such-program"}, "could not be started: no-such-program: no such file or directory"),
        ({"command": "true", "args": ["\0"]}, "could not be started: there is a NUL in its arguments"),
        ({"command": "true", "cwd": "nowhere"}, "could not be started: nowhere: no such file or directory"),
        ({"command": "true", "env": {"A": "${UNSET_ONE}"}}, "names the variable UNSET_ONE, which is not set"),
        ({"url": "${ADDRESS:-example.org}"}, "has a `url` that does not begin with http:// or https://"),
        ({"url": "http://127.0.0.1:1/mcp"}, "cannot be reached: "),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_in_a_sentence(lost, entry, sentence):
    code, line = lost(entry)
    assert code == 1
    assert line.startswith(f"the MCP server srv {sentence}")


def test_an_entry_that_has_changed_meanwhile_is_judged_again(launch, tmp_path, processes):
    file = tmp_path / "mcp.json"
    for content, sentence in (
        ("{}", f"cannot be looked up: {file}: it has no `mcpServers` object"),
        (json.dumps({"mcpServers": {}}), f"is not in {file} any more"),
        (json.dumps({"mcpServers": {"srv": {}}}), "cannot be used: it needs either a `command` to start or a `url`"),
    ):
        driver = launch({"command": "true"}, content=content)
        driver.rest()
        assert last_line(driver) == f"the MCP server srv {sentence}"
