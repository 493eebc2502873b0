"""The program of `docs/typescript.md`, compiled, run, and asked for what the page says."""

import re

import pytest

from tests.examples.conftest import ROOT
from tests.npm import typescript as typescript_sdk
from tests.npm.packages import INSTALL_S, installed
from zotctl.ext.new import new
from zotd.testing.ext_driver import ExtensionDriver, text_of

pytestmark = pytest.mark.timeout(INSTALL_S + 60)


@pytest.fixture
def directory(tmp_path):
    """A new extension with the program of the page."""
    new("release", "ts", tmp_path)
    blocks = re.findall(r"^```ts\n(.*?)^```$", (ROOT / "docs" / "typescript.md").read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "release" / "main.ts").write_text("\n".join(blocks))
    (tmp_path / "release" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return tmp_path / "release"


@pytest.fixture
def driver(request, directory):
    """The same, running; its data is beside it."""
    argv = [*typescript_sdk.runtime(request.config, "bun"), "main.ts"]
    with ExtensionDriver(argv, cwd=directory) as driver:
        driver.greet(data_dir=str(directory))
        yield driver


def test_it_passes_the_compiler(request, directory):
    packages = installed(request.config, typescript_sdk.SDK)
    (directory / "node_modules").symlink_to(packages)
    assert typescript_sdk.complaints(packages, directory) == ""


def test_its_tools_answer(driver):
    assert text_of(driver.call_tool("tag", version="1.2.0")) == "tagged 1.2.0"
    assert driver.expect("tool_progress")["text"] == "tagging 1.2.0"
    assert text_of(driver.call_tool("tag", version=1)) == "argument version: expected a string, got 1"
    logo = driver.call_tool("logo")["content"]
    assert logo[0]["text"] == "8 bytes"
    assert logo[1]["mime_type"] == "image/png"


def test_its_tool_that_waits_is_cancelled(driver):
    call_id = driver.request("tool_call", name="wait", args={})
    driver.expect("tool_progress", id=call_id)
    driver.send("tool_cancel", id=call_id)
    assert text_of(driver.expect("tool_result", id=call_id)) == "cancelled"


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
    assert (directory / "released.json").read_text() == '["2.0"]'


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
