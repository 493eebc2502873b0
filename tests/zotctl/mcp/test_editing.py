"""`zotctl mcp add` and `remove`, and what they leave alone."""

import json
import stat

import pytest


def servers(path):
    return json.loads(path.read_text())["mcpServers"]


@pytest.fixture
def own(shell):
    return shell.home / "zot" / "mcp.json"


def test_a_command_and_a_url_are_added_with_what_they_need(shell, own):
    code, out, err = shell.zotctl("mcp", "add", "files", "--env", "A=${A}=b", "--timeout", "5", "--", "npx", "-y", "x")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"added files to {own}",
        "to try it, run: zotctl mcp test files",
        "to start it here, run: zotctl ext reload",
    ]
    header = "Authorization: Bearer ${T}"
    assert shell.zotctl("mcp", "add", "old", "https://x/sse", "--type", "sse", "--header", header)[0] == 0
    assert servers(own) == {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "${A}=b"}, "timeout_s": 5.0},
        "old": {"type": "sse", "url": "https://x/sse", "headers": {"Authorization": "Bearer ${T}"}},
    }
    assert stat.S_IMODE(own.stat().st_mode) == 0o600


def test_what_another_program_has_written_stays(shell):
    file = shell.cwd / ".mcp.json"
    before = {"$schema": "s", "mcpServers": {"ä": {"url": "no", "timeout": 5}, "b": {"command": "b"}}, "x": "\ud800"}
    file.write_text(json.dumps(before))
    file.chmod(0o640)
    assert shell.zotctl("mcp", "add", "--project", "c", "cc")[0] == 0
    code, out, _ = shell.zotctl("mcp", "remove", "--project", "b", "--json")
    assert (code, json.loads(out)) == (0, {"v": 1, "name": "b", "file": str(file)})
    before["mcpServers"] = {"ä": {"url": "no", "timeout": 5}, "c": {"command": "cc", "args": []}}
    assert json.loads(file.read_text()) == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in shell.cwd.iterdir()] == [".mcp.json"]


def test_a_link_to_the_file_stays_a_link(shell, own):
    real = shell.home / "settings.json"
    real.write_text("{}")
    own.parent.mkdir()
    own.symlink_to(real)
    assert shell.zotctl("mcp", "add", "a", "aa")[0] == 0
    assert own.is_symlink()
    assert list(servers(real)) == ["a"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["a b", "x"], '"a b" cannot be added: a name has 1 to 60 letters, digits, ".", "_" and "-"'),
        (["a", "x", "--type", "http"], '"a" cannot be added: its `type` is "http", which goes with a `url`'),
        (["a", "https://x", "y"], "a URL has no arguments; to give a header, use --header 'NAME: VALUE'"),
        (["a", "https://x", "--env", "A=b"], "--env and --cwd are for servers that are started by a command"),
        (["a", "x", "--header", "A: b"], "--header is for servers with a URL; a command gets variables by --env"),
        (["a", "x", "--env", "A"], '"A" is not of the form --env NAME=VALUE'),
        (["a", "x", "--timeout", "0"], '"a" cannot be added: its `timeout_s` is not a number of seconds above 0'),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(shell, own, words, why):
    code, _, err = shell.zotctl("mcp", "add", *words)
    assert (code, err.startswith(f"zotctl: {why}")) == (1, True), err
    assert not own.exists()


def test_a_server_is_replaced_only_by_force(shell, own):
    shell.zotctl("mcp", "add", "a", "one")
    assert shell.zotctl("mcp", "add", "a", "two")[2] == (
        f'zotctl: {own} has a server "a" already; to replace it, use --force\n'
    )
    assert shell.zotctl("mcp", "add", "a", "two", "--force")[0] == 0
    assert servers(own)["a"]["command"] == "two"


def test_a_server_in_the_other_file_is_named(shell, own):
    shell.zotctl("mcp", "add", "a", "one")
    assert shell.zotctl("mcp", "remove", "a", "--project")[2] == (
        f'zotctl: {shell.cwd / ".mcp.json"} has no server "a"; it is in {own}: run it without --project\n'
    )
    assert shell.zotctl("mcp", "remove", "b")[2] == f'zotctl: {own} has no server "b"\n'


def test_a_damaged_file_is_not_touched(shell, own):
    own.parent.mkdir()
    for content in ("{", "[]", '{"mcpServers": []}'):
        own.write_text(content)
        code, _, err = shell.zotctl("mcp", "add", "a", "one")
        assert (code, "correct it first" in err, own.read_text()) == (1, True, content)
