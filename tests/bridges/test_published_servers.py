"""The servers that the MCP project publishes on npm and PyPI, in pinned versions: what users will try first."""

import json
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.needs import ABSENT, needs
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


def test_everything_asks_the_model_and_the_user(published):
    driver = published("everything", "stdio")
    args = {"prompt": "How are you?", "maxTokens": 20}
    call = driver.request("tool_call", name="srv__trigger-sampling-request", args=args, session_id="s_1")
    question = driver.expect("ask_model", tool_call=call)
    assert (question["system"], question["max_tokens"]) == ("You are a helpful test server.", 20)
    driver.send("model_answer", id=question["id"], action="accept", text="Fine.", model="m-1", stop="end_turn")
    assert '"text": "Fine."' in text_of(driver.expect("tool_result", id=call))
    call = driver.request("tool_call", name="srv__trigger-elicitation-request", args={}, session_id="s_1")
    question = driver.expect("ask_user", tool_call=call)
    driver.send("user_answer", id=question["id"], action="decline", values={})
    assert "User declined" in text_of(driver.expect("tool_result", id=call))


def test_everything_runs_a_task_that_asks(published):
    driver = published("everything", "stdio")
    args = {"topic": "python", "ambiguous": True}
    call = driver.request("tool_call", name="srv__simulate-research-query", args=args, session_id="s_1")
    driver.expect("tool_progress", id=call, text="Gathering sources...")
    question = driver.expect("ask_user", tool_call=call)
    assert question["fields"] == {"interpretation": ""}
    driver.send("user_answer", id=question["id"], action="accept", values={"interpretation": "snake"})
    assert "# Research Report: python (snake)" in text_of(driver.expect("tool_result", id=call))
    call = driver.request("tool_call", name="srv__simulate-research-query", args=args, session_id="s_1")
    driver.expect("tool_progress", id=call, text="Gathering sources...")
    driver.send("tool_cancel", id=call)
    assert text_of(driver.expect("tool_result", id=call)) == "cancelled"
    assert driver.shut_down() == 0


def test_sequential_thinking(published):
    driver = published("sequential-thinking")
    thought = {"thought": "First, look.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    result = driver.call_tool("srv__sequentialthinking", **thought)
    assert json.loads(text_of(result))["thoughtHistoryLength"] == 1


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


# --- from PyPI --------------------------------------------------------------------------------------------------------


@pytest.fixture
def from_pypi(start):
    """Starts a server of the virtual environment that `make mcp-servers` makes."""

    def from_pypi(name, *args):
        program = Path(sys.prefix, "mcp-servers", "bin", f"mcp-server-{name}")
        if not program.exists():
            pytest.skip(f"{ABSENT}mcp-server-{name}: make mcp-servers")
        return start({"command": str(program), "args": [str(one) for one in args], "env": {"NO_PROXY": "127.0.0.1"}})

    return from_pypi


def test_time(from_pypi):
    driver = from_pypi("time")
    there = json.loads(text_of(driver.call_tool("srv__get_current_time", timezone="Asia/Tokyo")))
    assert there["datetime"].endswith("+09:00")
    result = driver.call_tool("srv__get_current_time", timezone="Nowhere")
    assert (result["is_error"], "Nowhere" in text_of(result)) == (True, True)


def test_git(from_pypi, tmp_path):
    needs("git")
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    (tmp_path / "project" / "new.txt").write_text("")
    driver = from_pypi("git", "--repository", tmp_path / "project")
    assert "new.txt" in text_of(driver.call_tool("srv__git_status", repo_path=str(tmp_path / "project")))
    assert driver.call_tool("srv__git_status", repo_path=str(tmp_path))["is_error"]


class Quiet(SimpleHTTPRequestHandler):
    """Serves the working directory, and writes no log."""

    def log_message(self, *_):
        pass


def test_fetch(from_pypi, tmp_path):
    (tmp_path / "page.html").write_text("<html><body><h1>Walrus</h1><p>It swims.</p></body></html>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        try:
            driver = from_pypi("fetch", "--allow-private-ips")
            url = f"http://127.0.0.1:{pages.server_port}/page.html"
            assert "Walrus" in text_of(driver.call_tool("srv__fetch", url=url, raw=True))
            prompt = driver.run_command("srv:fetch", url)
            assert "It swims." in prompt["prompt"]
        finally:
            pages.shutdown()
            thread.join()
