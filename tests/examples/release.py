"""What the program of a page about extensions does, in whatever language: `driver` runs it in `directory`.

The tests of a page import these.
"""

import json

from zotd.testing.ext_driver import text_of

__all__ = [
    "test_its_commands_answer",
    "test_its_guards_decide",
    "test_its_panel_is_worked_with_keys",
    "test_its_status_follows_events",
    "test_its_tool_calls_one_of_the_host",
]


def test_its_tool_calls_one_of_the_host(driver):
    call_id = driver.request("tool_call", name="changes", args={})
    asked = driver.expect("call_tool", name="bash", parent_id=call_id)
    driver.send("tool_result", id=asked["id"], content=[{"type": "text", "text": "no repository"}], is_error=True)
    assert text_of(driver.expect("tool_result", id=call_id)) == "git failed: no repository"


def test_its_commands_answer(driver, directory):
    assert driver.run_command("release", "2.0")["prompt"] == "Make the release 2.0."
    assert driver.run_command("today")["insert"] == "2026-01-31"
    assert driver.run_command("released")["display"] == "none"
    assert driver.run_command("released", "2.0")["display"] == "2.0"
    assert json.loads((directory / "released.json").read_text()) == ["2.0"]


def test_its_guards_decide(driver):
    def ask(**args):
        return driver.intercept("tool_call", tool_id="t", tool_name="bash", tool_args=args)

    assert ask(command="git push")["reason"] == "pushing is for people"
    assert ask(command="rm --force x")["modified_args"] == {"command": "rm  x"}
    assert driver.intercept("assistant_message", text="it is hunter2")["replace_text"] == "it is …"


def test_its_status_follows_events(driver):
    driver.send("event", event="turn_end", stop="error", error="no model", session_id="s")
    assert driver.expect("set_status", session_id="s")["text"] == "ended: error"
    assert driver.expect("notify")["message"] == "the turn failed: no model"


def test_its_panel_is_worked_with_keys(driver):
    assert driver.run_command("steps")["open_panel"]["lines"] == ["changelog", "tag", "upload"]
    driver.send("panel_key", panel_id="steps", key="enter")
    assert driver.expect("panel_render")["lines"] == ["tag", "upload"]
    driver.send("panel_key", panel_id="steps", key="esc")
    driver.expect("panel_close", panel_id="steps")
