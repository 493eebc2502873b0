"""The program of `docs/python-sdk.md`, as an extension in one file, asked for what the page says, and validated."""

import re
import sys

import pytest

from tests.examples.conftest import ROOT
from tests.examples.release import *  # noqa: F403  (what both pages' programs do)
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
def directory(file):
    return file.parent


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
