"""The program of `docs/python-sdk.md`, as an extension in one file, asked for what the page says, and validated."""

import json
import re
import sys

import pytest

from tests.examples.conftest import ROOT
from zotd.exthost.validation import Verdict, validate
from zotd.testing.ext_driver import ExtensionDriver, text_of


@pytest.fixture
def file(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/python-sdk.md").read_text(), re.DOTALL | re.MULTILINE)
    file = tmp_path / "release.py"
    file.write_text("\n\n".join(blocks))
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return file


@pytest.fixture
def driver(file):
    """The same, running; its data is beside it."""
    with ExtensionDriver([sys.executable, str(file)], cwd=file.parent) as driver:
        driver.greet(data_dir=str(file.parent))
        yield driver


async def test_it_keeps_every_rule(file, tmp_path):
    report = await validate(file, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, cwd=str(tmp_path))
    assert report.name == "release"
    assert [one.sentence for one in report.findings if one.verdict is Verdict.BROKEN] == []


def test_its_tools_answer(driver):
    assert text_of(driver.call_tool("tag", version="1.2.0")) == "tagged 1.2.0"
    assert driver.expect("tool_progress")["text"] == "tagging 1.2.0"
    assert "version" in text_of(driver.call_tool("tag", version=1))
    logo = driver.call_tool("logo")["content"]
    assert logo[0]["text"] == "8 bytes"
    assert logo[1]["mime_type"] == "image/png"


def test_its_tool_that_waits_is_cancelled(driver):
    call_id = driver.request("tool_call", name="wait", args={})
    driver.send("tool_cancel", id=call_id)
    assert driver.expect("tool_result", id=call_id)["is_error"] is True


def test_its_tool_calls_one_of_the_host(driver):
    call_id = driver.request("tool_call", name="changes", args={})
    asked = driver.expect("call_tool", name="bash", parent_id=call_id)
    driver.send("tool_result", id=asked["id"], content=[{"type": "text", "text": "no repository"}], is_error=True)
    assert text_of(driver.expect("tool_result", id=call_id)) == "git failed: no repository"


def test_its_commands_answer(driver, file):
    assert driver.run_command("release", "2.0")["prompt"] == "Make the release 2.0."
    assert driver.run_command("today")["insert"] == "2026-01-31"
    assert driver.run_command("released")["display"] == "none"
    assert driver.run_command("released", "2.0")["display"] == "2.0"
    assert json.loads((file.parent / "released.json").read_text()) == ["2.0"]


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
