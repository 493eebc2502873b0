"""`zotctl mcp list` and `logs`, with a daemon and without."""

import json

from tests.bridges.conftest import program


def write(file, **servers):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


def test_both_files_are_listed_without_a_daemon_and_without_secrets(shell):
    write(shell.home / "zot" / "mcp.json", a={"command": "aa", "args": ["b c"], "env": {"K": "s3cret"}}, b={"url": "u"})
    write(
        shell.cwd / ".mcp.json",
        b={"url": "https://b", "headers": {"K": "s3cret"}},
        c={},
        d={"url": "x", "disabled": True},
    )
    code, out, err = shell.zotctl("mcp", "list")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["NAME", "STATE", "TOOLS", "FROM", "SERVER", "REASON"],
        ["b", "unknown", "project", "https://b"],
        ["c", "invalid", "project", *["it", "needs", "either", "a", "`command`", "to", "start", "or", "a", "`url`"]],
        ["d", "disabled", "project", "x"],
        ["a", "unknown", "user", "aa", "'b", "c'"],
    ]
    listed = shell.zotctl("mcp", "list", "--json")[1]
    assert [one["name"] for one in json.loads(listed)["servers"]] == ["b", "c", "d", "a"]
    assert "s3cret" not in listed


def test_a_file_that_cannot_be_read_is_reported_beside_the_other(shell):
    write(shell.home / "zot" / "mcp.json", a={"command": "aa"})
    (shell.cwd / ".mcp.json").write_text("[")
    code, out, err = shell.zotctl("mcp", "list")
    assert (code, out.splitlines()[1].split()) == (1, ["a", "unknown", "user", "aa"])
    assert err.startswith(f"zotctl: {shell.cwd / '.mcp.json'}: ")


def test_a_running_server_is_listed_with_its_tools_and_has_a_log(live):
    write(live.home / "mcp.json", odd=program("odd_server", "chatty"))
    live.session()
    live.until("mcp-odd", "ready")
    code, out, _ = live.zotctl("mcp", "list")
    assert (code, out.splitlines()[1].split()[:4]) == (0, ["odd", "ready", "1", "user"])
    assert "Welcome to my server!" in live.zotctl("mcp", "logs", "odd")[1]
    assert live.zotctl("candidates", "zotctl", "mcp", "logs", "o")[1].startswith("odd\t")
