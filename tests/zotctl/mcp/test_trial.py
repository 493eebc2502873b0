"""`zotctl mcp test`, with real servers."""

import json
import os
import signal

import psutil
import pytest

from tests.bridges.conftest import program
from tests.needs import needs
from tests.zotctl.mcp.test_listing import write


@pytest.fixture
def tried(shell):
    """Writes an entry, and runs the command."""

    def tried(entry, *flags, file=None):
        write(file or shell.home / "zot" / "mcp.json", srv=entry)
        return shell.zotctl("mcp", "test", "srv", *flags)

    return tried


def test_a_server_is_shown_with_what_it_offers(tried):
    code, out, err = tried(program("sample_server"))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("srv: sample ")
    assert ["tool", "srv__echo", "Says", "it", "back."] in [line.split() for line in lines]
    assert ["prompt", "/srv:review", "Reviews", "a", "file."] in [line.split() for line in lines]
    assert ["resource", "memo://one", "The", "first", "memo."] in [line.split() for line in lines]


def test_a_server_that_exits_is_reported_with_its_last_words(tried):
    code, out, err = tried(program("odd_server", "early exit"), "--json")
    result = json.loads(out)
    assert (code, result["ok"], err) == (1, False, "")
    assert result["error"] == "the MCP server srv has exited with code 7"
    assert result["stderr"].splitlines()[-1] == "I need a licence"


def test_a_server_that_asks_to_be_confined_is_tested_in_its_jail(tried, shell):
    needs("bwrap")
    script = f"cat {shell.home}/zot/mcp.json >&2; exit 3"
    entry = {"command": "sh", "args": ["-c", script], "env": {"MARK": "readable"}}
    for sandbox, is_read in (({}, True), ({"sandbox": {}}, False), ({"sandbox": {"network": ["example.org"]}}, False)):
        code, out, _ = tried({**entry, **sandbox}, "--json")
        result = json.loads(out)
        assert (code, result["error"]) == (1, "the MCP server srv has exited with code 3")
        assert ("readable" in str(result["stderr"])) == is_read


def test_one_that_cannot_be_confined_is_not_started(tried, shell):
    entry = {"command": "sh", "args": ["-c", f"touch {shell.home}/made"], "sandbox": {"write": ["~/absent"]}}
    code, _, err = tried(entry)
    assert (code, "absent does not exist" in err, (shell.home / "made").exists()) == (1, True, False)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"command": "no-such-program"}, "could not be started: no-such-program: no such file or directory"),
        ({"command": "x", "args": ["${NOPE_A}"]}, "names the variable NOPE_A, which is not set; set it, or write"),
        ({"url": "http://127.0.0.1:1/mcp"}, "cannot be reached: "),
    ],
)
def test_a_server_that_cannot_be_used_is_reported(tried, entry, why):
    code, out, err = tried(entry)
    assert (code, out) == (1, "")
    assert err.startswith(f"zotctl: the MCP server srv {why}"), err


def test_an_unknown_server_is_an_error_that_names_the_list(shell):
    code, _, err = shell.zotctl("mcp", "test", "none")
    assert (code, err) == (
        1,
        'zotctl: there is no MCP server "none" here; to see which there are, run: zotctl mcp list\n',
    )


def test_what_runs_of_a_project_is_shown_before(tried, shell):
    code, _, err = tried({"command": "false"}, file=shell.cwd / ".mcp.json")
    assert (code, err.splitlines()[0]) == (1, f"testing srv of {shell.cwd / '.mcp.json'}: false")


def test_ctrl_c_ends_the_test_and_the_server(shell, tmp_path):
    mark = tmp_path / "mark"
    wait = f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 600"
    write(shell.home / "zot" / "mcp.json", srv={"command": "sh", "args": ["-c", wait]})
    with shell.start("zotctl", "mcp", "test", "srv", start_new_session=True) as process:
        while not mark.exists():
            assert process.poll() is None
        server = psutil.Process(int(mark.read_text()))
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 130
    server.wait(10)
