"""The program of `docs/typescript.md`, compiled, run, and asked for what the page says."""

import re

import pytest

from tests.examples.conftest import ROOT
from tests.examples.release import *  # noqa: F403  (what both pages' programs do)
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
