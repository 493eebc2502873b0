"""`zotctl ext list`, `install`, `remove`, `enable`, `disable`, `reload` and `doctor`, in the real daemon."""

import json
import os
import pty
import subprocess


def rows(live, *flags):
    """The table, as name to state."""
    code, out, _ = live.zotctl("ext", "list", *flags)
    assert code == 0
    return {line.split()[0]: line.split()[1] for line in out.splitlines()[1:]}


def test_a_directory_is_installed_and_starts_with_the_next_reload(live):
    live.write("echo", into=live.cwd)
    live.session()

    code, out, err = live.zotctl("ext", "install", "echo")  # from here; the daemon works elsewhere
    assert (code, err) == (0, "")
    assert out == (
        f"installed echo 1.0 in {live.installed / 'echo'}\n"
        "it runs with all your rights\n"
        "to start it here, run: zotctl ext reload; elsewhere it starts with the next session\n"
    )
    assert rows(live) == {}

    assert live.zotctl("ext", "reload") == (0, "ready: echo\n", "")
    assert rows(live) == {"echo": "ready"}


def test_the_table_and_its_json_tell_what_each_extension_offers(live):
    live.write("echo")
    session = live.session()
    live.command(session, "shout", "x")
    code, out, _ = live.zotctl("ext", "list", "--session", "tests")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["NAME", "STATE", "SOURCE", "TOOLS", "COMMANDS", "REASON"],
        ["echo", "ready", "user", "shout", "/shout,", "/ask,", "/draft"],
    ]
    listed = json.loads(live.zotctl("ext", "list", "--json")[1])
    assert listed["v"] == 1
    assert [(one["name"], one["tools"]) for one in listed["extensions"]] == [("echo", ["shout"])]
    (live.cwd / "other").mkdir()
    assert rows(live, "--cwd", "other") == {"echo": "stopped"}
    assert str(live.cwd) in live.zotctl("ext", "list", "--all")[1]


def test_failed_install_is_one_line(live):
    (live.cwd / "empty").mkdir()
    code, out, err = live.zotctl("ext", "install", "empty")
    assert (code, out) == (1, "")
    assert err.startswith(f"zotctl: {live.cwd / 'empty'} was not installed: ")
    code, _, err = live.zotctl("ext", "install", "file:///etc")
    assert code == 1
    assert "file:" in err
    assert str(live.cwd) not in err


def test_an_extension_from_elsewhere_is_replaced_only_when_told_so(live):
    live.write("echo", into=live.cwd / "mine")
    live.write("echo", into=live.cwd / "yours")
    assert live.zotctl("ext", "install", "mine/echo")[0] == 0
    code, _, err = live.zotctl("ext", "install", "yours/echo")
    assert code == 1
    assert "from" in err
    code, out, _ = live.zotctl("ext", "install", "yours/echo", "--replace", "--json")
    installed = json.loads(out)
    assert (code, installed["v"], installed["name"]) == (0, 1, "echo")


def test_progress_is_for_a_terminal(live):
    live.write("echo", into=live.cwd)
    terminal, other_side = pty.openpty()
    with live.shell.start("zotctl", "ext", "install", "echo", stderr=other_side) as process:
        out, _ = process.communicate(timeout=40)
    os.close(other_side)
    assert process.returncode == 0
    assert os.read(terminal, 4096).decode() == f"copying {live.cwd / 'echo'} …\r\n"
    os.close(terminal)
    assert out.startswith("installed echo")


def test_disable_stops_an_extension_and_enable_restarts_it(live):
    live.write("echo", into=live.cwd)
    live.zotctl("ext", "install", "echo")
    session = live.session()
    live.command(session, "shout")
    assert live.zotctl("ext", "disable", "echo") == (0, "echo is disabled\n", "")
    assert rows(live) == {"echo": "disabled"}
    assert live.zotctl("ext", "enable", "echo") == (0, "echo is enabled\n", "")
    live.command(session, "shout")
    assert rows(live) == {"echo": "ready"}
    assert live.zotctl("ext", "remove", "--yes", "echo")[:2] == (
        0,
        f"echo is removed; its data is still in {live.home / 'data' / 'echo'}\n",
    )
    assert rows(live) == {}
    code, _, err = live.zotctl("ext", "remove", "--yes", "echo")
    assert code == 1
    assert err.startswith("zotctl: ")


def test_a_list_says_which_session_an_extension_belongs_to(live):
    path = str(live.write("echo", into=live.cwd))
    sessions = [live.session(extensions=[path]), live.session(extensions=[path])]
    lines = [line.split() for line in live.zotctl("ext", "list", "--all")[1].splitlines()]
    at = lines[0].index("SESSION")
    found = {part for line in lines[1:] if line[0] == "echo" for part in line if part in sessions}
    assert (found, at > 0) == (set(sessions), True)


def test_reload_reports_removed_and_failing_extensions(live):
    live.write("gone")
    live.write("sick")
    session = live.session()
    live.command(session, "gone:shout")
    live.command(session, "shout")
    subprocess.run(["rm", "-r", live.installed / "gone"], check=True)
    (live.installed / "sick" / "main.py").write_text("import nowhere\n")

    code, out, err = live.zotctl("ext", "reload")
    assert code == 1
    assert out == "ready: sick\nstopped: gone\n"
    assert "sick" in err
    code, out, err = live.zotctl("ext", "reload", "nobody", "--json")
    assert (code, err) == (1, "")
    assert "nobody" in json.loads(out)["errors"][0]


def test_reload_without_running_extensions_says_so(live):
    assert live.zotctl("ext", "reload") == (
        0,
        "no extensions are running there; they start with the first session\n",
        "",
    )


def test_the_doctor_lists_problems_only(live):
    assert live.zotctl("ext", "doctor") == (0, "no problems found\n", "")
    (live.write("sick") / "extension.json").write_text("{")
    live.session()
    code, out, _ = live.zotctl("ext", "doctor", "--all")
    assert code == 1
    assert f"{live.installed / 'sick' / 'extension.json'}" in out
    code, out, _ = live.zotctl("ext", "doctor", "--json")
    assert code == 1
    assert [finding["cwd"] for finding in json.loads(out)["findings"]] == [str(live.cwd)]


def test_an_extension_s_description_cannot_steer_the_terminal(live):
    live.write("sick", "import os, sys\nsys.stderr.write('\\x1b[2J\\n'); sys.stderr.flush(); os._exit(3)")
    live.session()
    live.until("sick", "restarting", "parked")
    for action in ("list", "doctor"):
        assert "\x1b" not in live.zotctl("ext", action)[1]
    assert live.zotctl("ext", "logs", "sick")[1].count("\x1b") == 0


def test_a_session_that_is_not_there_is_a_sentence(live):
    code, _, err = live.zotctl("ext", "list", "--session", "nobody")
    assert (code, err) == (1, "zotctl: there is no session nobody; `zotctl sessions` lists them\n")


def test_zot_ext_is_the_same(live):
    assert live.zot("ext", "doctor") == live.zotctl("ext", "doctor")
