"""Three published servers, in pinned versions: what users will try first."""

import json

import pytest

from tests.npm.packages import INSTALL_S, installed
from zotd.testing.ext_driver import text_of

pytestmark = pytest.mark.timeout(INSTALL_S + 20)


@pytest.fixture(scope="session")
def programs(request):
    """The directory of the servers' programs."""
    return installed(request.config) / ".bin"


@pytest.fixture
def published(programs, start):
    def published(name, *args, **env):
        return start({"command": str(programs / f"mcp-server-{name}"), "args": [str(one) for one in args], "env": env})

    return published


def test_everything(published):
    driver = published("everything", "stdio")
    assert text_of(driver.call_tool("srv__echo", message="hi")) == "Echo: hi"
    call = driver.request("tool_call", name="srv__trigger-long-running-operation", args={"duration": 0.2, "steps": 2})
    assert driver.expect("tool_progress", id=call)["text"] == "1/2"
    assert driver.expect("tool_progress", id=call)["text"] == "2/2"
    assert "completed" in text_of(driver.expect("tool_result", id=call))
    kinds = [block["type"] for block in driver.call_tool("srv__get-tiny-image")["content"]]
    assert kinds == ["text", "image", "text"]
    weather = driver.call_tool("srv__get-structured-content", location="New York")
    assert json.loads(text_of(weather)) == weather["structured_content"]
    assert driver.call_tool("srv__echo")["is_error"]
    call = driver.request("tool_call", name="srv__trigger-long-running-operation", args={"duration": 60, "steps": 600})
    driver.expect("tool_progress", id=call)
    driver.send("tool_cancel", id=call)
    assert text_of(driver.expect("tool_result", id=call)) == "cancelled"
    assert driver.shut_down() == 0


def await_root(driver, directory):
    """It asks for the roots after it has said that it is ready."""
    while str(directory) not in text_of(driver.call_tool("srv__list_allowed_directories")):
        pass


def test_filesystem(published, start, programs, tmp_path):
    # The server takes the roots, which are the working directory, in place of the directories that its arguments name.
    place = tmp_path / "project"
    (tmp_path / "elsewhere").mkdir()
    driver = published("filesystem", tmp_path / "elsewhere")
    await_root(driver, place)
    assert (driver.tools["srv__read_text_file"]["replay"], driver.tools["srv__move_file"]["replay"]) == (
        "safe",
        "never",
    )
    driver.call_tool("srv__write_file", path=str(place / "a.txt"), content="hello")
    assert (place / "a.txt").read_text() == "hello"
    assert text_of(driver.call_tool("srv__read_text_file", path=str(place / "a.txt"))) == "hello"
    (tmp_path / "elsewhere" / "b.txt").write_text("there")
    other = start(
        {"command": str(programs / "mcp-server-filesystem"), "args": [str(place)], "cwd": str(tmp_path / "elsewhere")}
    )
    await_root(other, tmp_path / "elsewhere")
    assert text_of(other.call_tool("srv__read_text_file", path=str(tmp_path / "elsewhere" / "b.txt"))) == "there"
    outside = driver.call_tool("srv__read_text_file", path=str(tmp_path / "mcp.json"))
    assert outside["is_error"]
    assert "Access denied" in text_of(outside)


def test_memory(published, tmp_path):
    driver = published("memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
    entity = {"name": "zot", "entityType": "program", "observations": ["keeps sessions alive"]}
    assert not driver.call_tool("srv__create_entities", entities=[entity])["is_error"]
    driver = published("memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
    assert "keeps sessions alive" in text_of(driver.call_tool("srv__search_nodes", query="zot"))
