"""`zotctl trust`, and its effect on extensions."""

import json
import os
import pty
import sys

import pytest

TOOL = '@ext.tool\ndef local() -> str:\n    "Local."\n    return "ok"'


@pytest.fixture
def project(live):
    """A directory that contains an extension."""
    live.write("local", TOOL, into=live.project)
    return live.cwd


def states(live):
    listed = json.loads(live.zotctl("ext", "list", "--json")[1])
    return {one["name"]: one["state"] for one in listed["extensions"]}


def answer(live, words, *flags, meanwhile=lambda: None):
    """Grant on a terminal, and answer its question after `meanwhile`; the exit code, the question, standard output."""
    terminal, other_side = pty.openpty()
    with live.shell.start("zotctl", "trust", "grant", *flags, stdin=other_side, stderr=other_side) as process:
        os.close(other_side)
        said = ""
        while "[y/N]" not in said:
            said += os.read(terminal, 4096).decode().replace("\r\n", "\n")
        meanwhile()
        os.write(terminal, f"{words}\n".encode())
        out, _ = process.communicate(timeout=40)
    os.close(terminal)
    return process.returncode, said, out


def test_a_grant_shows_what_would_run_and_starts_it_after_a_yes(live, project):
    live.session()
    assert states(live) == {"local": "untrusted"}
    code, said, out = answer(live, "y")
    assert code == 0
    assert said.startswith("these would run, or give the agent instructions:\n  .zot/extensions/local\n")
    assert out == f"{project} is trusted\n"
    live.until("local", "ready")
    listed = json.loads(live.zotctl("trust", "list", "--json")[1])
    assert (listed["v"], [(one["path"], one["state"]) for one in listed["workspaces"]]) == (
        1,
        [(str(project), "trusted")],
    )


@pytest.mark.parametrize("words", ["n", "", "yo"])
def test_approve_saves_no_rule_without_a_yes(live, project, words):
    code, _, out = answer(live, words, ".")
    assert (code, out) == (1, "")
    assert live.zotctl("trust", "list")[1].splitlines()[1:] == []


def test_grant_without_a_terminal_needs_yes(live, project):
    code, out, err = live.zotctl("trust", "grant")
    assert (code, out) == (1, "")
    assert err.endswith(
        "zotctl: cannot ask for confirmation without a terminal; inspect the files, then run: zotctl trust grant --yes PATH\n"
    )
    code, out, err = live.zotctl("trust", "grant", "--yes", "--json", ".")
    granted = json.loads(out)
    assert (code, granted["v"], granted["state"], granted["path"]) == (0, 1, "trusted", str(project))
    assert "  .zot/extensions/local\n" in err
    assert live.zotctl("trust", "grant", "--yes") == (0, f"{project} is trusted\n", "")


def test_code_that_was_changed_meanwhile_is_asked_about_again_file_by_file(live, project):
    live.zotctl("trust", "grant", "--yes")
    (live.project / "local" / "main.py").write_text("import other\n")
    (project / ".mcp.json").write_text("{}")
    listed = live.zotctl("trust", "list")[1].splitlines()[1]
    assert listed.split() == [str(project), "changed", ".mcp.json,", ".zot/extensions/local/main.py"]
    assert "changed since it was trusted:" in live.zotctl("trust", "grant", "--yes")[2]
    assert live.zotctl("trust", "list")[1].splitlines()[1].split() == [str(project), "trusted"]


def test_a_grant_shows_the_commands_that_would_run(live, project):
    server = {"command": "npx", "args": ["-y", "some server"]}
    confined = {"command": "hub", "sandbox": {"network": ["api.example.org"]}}
    servers = {"files": server, "far": {"url": "https://h/mcp"}, "hub": confined}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (live.project / "tools").mkdir()
    (live.project / "tools" / "count.py").write_text("async def run() -> None: ...\n")
    said = live.zotctl("trust", "grant", "--yes")[2]
    for line in (
        "  .mcp.json, server files: npx -y 'some server' (runs with all your rights)\n",
        "  .mcp.json, server far: https://h/mcp\n",
        "  .mcp.json, server hub: hub (is confined: changes nothing but its own data; reaches api.example.org)\n",
        "  .zot/extensions/local: python3 main.py (runs with all your rights)\n",
        f"  .zot/extensions/tools/count.py: run by {sys.executable}\n",
    ):
        assert line in said


def test_grant_refuses_files_that_changed_after_they_were_shown(live, project):
    code, _, out = answer(live, "y", meanwhile=lambda: (project / ".mcp.json").write_text("{}"))
    assert (code, out) == (1, "")
    assert live.zotctl("trust", "list")[1].splitlines()[1:] == []


def test_empty_directory_can_be_trusted(live):
    code, _, err = live.zotctl("trust", "grant", "--yes")
    assert code == 0
    assert "it contains no code yet" in err


def test_revoke_stops_the_extensions_of_the_directory(live, project):
    live.zotctl("trust", "grant", "--yes", str(project))
    live.session()
    live.until("local", "ready")
    code, out, _ = live.zotctl("trust", "revoke")
    assert (code, out) == (0, f"{project} is no longer trusted; processes started from it were stopped\n")
    live.until("local", "stopped", "untrusted")
    code, _, err = live.zotctl("trust", "revoke")
    assert code == 1
    assert err.startswith(f"zotctl: {project} is not trusted")


def test_a_directory_that_is_not_there_is_a_sentence(live):
    code, _, err = live.zotctl("trust", "grant", "nowhere", "--yes")
    assert (code, err) == (1, f"zotctl: {live.cwd / 'nowhere'} is not a directory\n")


def test_a_prompt_reports_untrusted_code_once_on_stderr_and_the_flag_trusts_it(live, project):
    model = ["--provider", "openai", "--api-key", "k", "--base-url", live.model("hello")]
    code, out, err = live.zot("-p", "hi", *model)
    assert (code, out) == (0, "hello\n")
    assert err.count(".zot/extensions/local") == 1
    assert "zotctl trust grant" in err
    assert live.zot("-p", "hi", "--trust", *model) == (0, "hello\n", "")
    live.until("local", "ready")


def test_rpc_takes_the_flag_too(live, project):
    model = ["--provider", "openai", "--api-key", "k"]
    request = '{"type":"prompt","message":"hi"}\n'
    script = [{"steps": [{"type": "call", "name": "local"}]}, {"steps": [{"type": "text", "deltas": ["done"]}]}]
    for flags, fails in (["--trust"], False), ([], True):
        url = live.scripted(*script)
        code, out, _ = live.zot("rpc", *model, "--base-url", url, *flags, piped=request)
        results = [event for event in map(json.loads, out.splitlines()) if event["type"] == "tool_result"]
        assert code == 0
        assert [result["is_error"] for result in results] == [fails]


def test_a_bridge_to_a_session_takes_the_flag_too(live, project):
    live.session(live.model("hello"))
    live.until("local", "untrusted")
    code, out, _ = live.zot("rpc", "--session", "tests", "--trust", piped='{"type":"prompt","message":"hi"}\n')
    assert code == 0
    assert json.loads(out.splitlines()[-1])["type"] == "done"
    live.until("local", "ready")
