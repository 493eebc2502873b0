"""zotctl as its users see it."""

import json
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from zotd.client.blocking import connect
from zotd.client.fields import child
from zotd.wire import api, events


def sent(daemon, command):
    return [request for request in daemon.requests if request["type"] == command]


@pytest.fixture
def session(daemon, shell):
    with connect(shell.path) as connection:
        answer = connection.call("session.create", cwd=str(shell.cwd), name="tests", env={})
    return daemon.sessions[child(answer, "session")["id"]]


def test_ping_says_whether_the_daemon_answers(shell, daemon):
    assert shell.zotctl("ping") == (0, "pong\n", "")
    code, out, err = shell.zotctl("ping", "--fast")
    assert (code, out) == (2, "")
    assert "--fast" in err
    assert shell.zotctl("ping", "--help")[0] == 0


def test_ping_without_a_daemon_fails_and_starts_none(shell):
    code, out, err = shell.zotctl("ping")
    assert (code, out) == (1, "")
    assert err == f"zotctl: zotd is not running: nothing listens at {shell.path}\n"


def test_ping_of_a_daemon_that_hangs_says_so(shell, daemon):
    daemon.wedged = True
    code, out, err = shell.zotctl("ping")
    assert (code, out) == (1, "")
    assert "did not answer within 2 s" in err


def test_ping_of_another_program_is_no_success(shell):
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor() as pool:
        listener.bind(shell.path)
        listener.listen(2)

        def answer():
            for _ in range(2):  # the quick attempt, and the one that says what is wrong
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(b"220 ready\n")

        answered = pool.submit(answer)
        code, out, err = shell.zotctl("ping")
        answered.result()
    assert (code, out) == (1, "")
    assert err.startswith("zotctl: ")


def test_status_of_a_running_daemon(shell, daemon):
    code, out, _ = shell.zotctl("status", "--json")
    status = json.loads(out)
    assert (code, status["v"], status["state"], status["socket"]) == (0, 1, "running", shell.path)
    assert set(status) == {*api.Status.__struct_fields__, "next"}
    assert "state       running" in shell.zotctl("status")[1]


def test_status_has_the_same_fields_when_nothing_runs(shell):
    code, out, err = shell.zotctl("status", "--json")
    status = json.loads(out)
    assert (code, status["state"], status["pid"]) == (1, "stopped", None)
    assert set(api.Status.__struct_fields__) <= set(status)
    assert err == ""


def test_status_of_a_daemon_that_hangs_is_wedged_and_names_its_process(shell, daemon):
    daemon.wedged = True
    code, out, _ = shell.zotctl("status", "--json")
    status = json.loads(out)
    assert (code, status["state"]) == (1, "wedged")
    assert status["pid"] > 0


def test_status_of_a_daemon_that_accepts_nothing_is_wedged(shell):
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(shell.path)
        listener.listen(0)
        first.connect(shell.path)
        code, out, _ = shell.zotctl("status", "--json")
    assert (code, json.loads(out)["state"]) == (1, "wedged")


@pytest.mark.parametrize("command", ["ping", "status"])
def test_the_quick_commands_load_nothing_that_is_slow(shell, daemon, command):
    heavy = ["asyncio", "msgspec", "argparse", "pathlib", "dataclasses", "inspect", "subprocess", "typing"]
    script = (
        f"import sys; from zotctl.__main__ import main; main([{command!r}]);"
        f"sys.exit(str([m for m in {heavy} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], env=shell.env, capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def test_stop_asks_as_an_administrator_and_waits(shell):
    command = [sys.executable, "-m", "zotd.testing.fake_daemon", "--ready-fd", "1"]
    with subprocess.Popen(command, env=shell.env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {process.pid}\n"
        assert shell.zotctl("stop", "--json") == (0, '{"v":1,"state":"stopped"}\n', "")
        assert process.wait(40) == 0
    assert shell.zotctl("stop")[:2] == (0, "zotd has stopped\n")


def test_stop_when_idle_does_not_wait(shell, daemon):
    assert shell.zotctl("stop", "--when-idle")[:2] == (0, "zotd will stop when no run is active\n")
    assert sent(daemon, "hello")[0]["role"] == "admin"
    assert sent(daemon, "daemon.shutdown")[0]["when_idle"] is True


def test_start_reports_a_daemon_that_runs_already(shell, daemon):
    code, out, _ = shell.zotctl("start", "--json")
    assert (code, json.loads(out)["state"]) == (0, "running")


def test_sessions_are_listed_as_a_table_or_json(shell, daemon, session):
    code, out, _ = shell.zotctl("sessions")
    assert code == 0
    assert out.splitlines()[0].split() == ["ID", "NAME", "STATE", "MODEL", "UPDATED", "DIRECTORY"]
    assert out.splitlines()[1].split()[:4] == [session.id, "tests", "idle", "fake-1"]
    listed = json.loads(shell.zotctl("sessions", "--json", "--cwd", ".")[1])
    assert (listed["v"], [s["id"] for s in listed["sessions"]]) == (1, [session.id])
    assert json.loads(shell.zotctl("sessions", "--json", "--cwd", "/")[1])["sessions"] == []
    assert "\x1b" not in out


@pytest.mark.parametrize("flags", [["--session", "tests"], ["--last"]])
def test_send_finds_a_session_by_name_or_the_last_one(shell, daemon, session, flags):
    code, out, _ = shell.zotctl("send", *flags, "hello")
    assert (code, out) == (0, f"{session.id}: started\n")
    assert sent(daemon, "prompt")[0]["message"] == "hello"


def test_send_with_wait_prints_the_answer(shell, daemon, session):
    assert shell.zotctl("send", "-s", session.id, "hello", "--wait") == (0, "hello\n", "")
    assert shell.zotctl("send", "-s", session.id, "-", "--wait", piped="piped")[:2] == (0, "piped\n")
    code, out, err = shell.zotctl("send", "-s", session.id, "fail no model", "--wait")
    assert (code, out, err) == (1, "", "zotctl: no model\n")


def test_send_to_a_busy_session_prints_the_queue_position(shell, daemon, session):
    shell.zotctl("send", "--last", "hang")
    assert shell.zotctl("send", "--last", "second")[1] == f"{session.id}: queued at position 1\n"
    code, _, err = shell.zotctl("send", "--last", "third", "--when-busy", "reject")
    assert (code, err) == (1, "zotctl: the session is busy\n")


def test_a_prompt_never_reaches_a_session_by_accident(shell, daemon, session):
    assert shell.zotctl("send", "hello")[0] == 2
    code, _, err = shell.zotctl("send", "--session", "nobody", "hello")
    assert (code, err) == (1, "zotctl: there is no session nobody; `zotctl sessions` lists them\n")


def test_attach_shows_past_and_new_events_until_ctrl_c(shell, daemon, session):
    shell.zotctl("send", "--last", "before", "--wait")
    with shell.start("zotctl", "attach", "--plain", "--last") as process:
        assert [process.stdout.readline() for _ in range(2)] == ["> before\n", "before\n"]
        daemon.do(lambda: session.show(events.Notice("info", "steer \x1b[2Jme")))
        assert process.stdout.readline() == "steer ^[[2Jme\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    assert shell.zotctl("attach", "--last")[0] == 1


def test_the_log_of_a_session_from_an_event_on(shell, daemon, session):
    shell.zotctl("send", "--last", "tool", "--wait")
    code, out, _ = shell.zotctl("log", "--last", "--json", "--after", "2")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["seq"] for line in lines] == list(range(3, len(session.committed) + 1))
    text = shell.zotctl("log", "--last")[1]
    assert text == "> tool\nI look.\n* bash true\nlooked\n"


def test_a_followed_log_continues_with_new_lines(shell, daemon, session):
    with shell.start("zotctl", "log", "--last", "--json", "--follow") as process:
        assert json.loads(process.stdout.readline())["type"] == "replay_complete"
        daemon.do(lambda: session.show(events.GuardNote("e", "tool_call", "no")))
        assert json.loads(process.stdout.readline())["seq"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130


def test_an_export_is_all_pages(shell, daemon, session):
    assert shell.zotctl("export", "--last") == (0, "first page\nsecond page\n", "")
    assert shell.zotctl("export", "--last", "-o", "out.jsonl") == (0, "", "")
    assert (shell.cwd / "out.jsonl").read_text() == "first page\nsecond page\n"
    code, _, err = shell.zotctl("export", "--last", "-o", "/nonexistent/out")
    assert (code, err) == (1, "zotctl: cannot write /nonexistent/out: No such file or directory\n")


def test_the_configuration_is_shown_and_checked_without_a_daemon(shell):
    home = shell.home / "zot"
    file = home / "config.toml"
    assert shell.zotctl("config", "check") == (0, f"{file}: does not exist; every setting has its default\n", "")
    assert f"file: {file} (does not exist)" in shell.zotctl("config", "show")[1].splitlines()
    home.mkdir()
    file.write_text("max_steps = 9\n")
    assert shell.zotctl("config", "check") == (0, f"{file}: no problems found\n", "")
    shell.env["ZOT_MODEL"] = "m"
    shown = json.loads(shell.zotctl("config", "show", "--json")[1])
    assert (shown["v"], shown["path"]) == (1, str(file))
    assert shown["settings"]["max_steps"] == {"value": 9, "source": "file"}
    lines = [line.split() for line in shell.zotctl("config", "show")[1].splitlines()]
    assert ["model", '"m"', "environment"] in lines
    assert ["file:", str(file)] in lines


def test_hosts_that_the_proxy_cannot_understand_are_named(shell):
    file = shell.home / "zot" / "config.toml"
    file.parent.mkdir()
    file.write_text('[sandbox]\nhosts = ["example.org", "http://example.org/", "*.example.org:8443", "10.0.0.0/99"]\n')
    code, out, err = shell.zotctl("config", "check")
    first, second = err.splitlines()
    assert (code, out) == (1, "")
    assert first.startswith(f"zotctl: {file}: sandbox.hosts: ")
    assert ("http://example.org/" in first, "10.0.0.0/99" in second) == (True, True)
    assert len(json.loads(shell.zotctl("config", "check", "--json")[1])["warnings"]) == 2


@pytest.mark.parametrize(
    ("text", "problem"), [("max_steps = \n", "line 1"), ("max_step = 9\n", "did you mean max_steps")]
)
def test_invalid_configuration_is_one_line_and_exit_code_1(shell, text, problem):
    (shell.home / "zot").mkdir()
    (shell.home / "zot" / "config.toml").write_text(text)
    code, out, err = shell.zotctl("config", "check")
    assert (code, out) == (1, "")
    assert problem in err
    assert err.count("\n") == 1


def test_help_lists_every_command_and_an_unknown_one_is_bad_usage(shell):
    code, out, _ = shell.zotctl("--help")
    assert code == 0
    for name in ["ping", "status", "start", "stop", "sessions", "send", "attach", "log", "export", "config"]:
        assert f"\n    {name}" in out
    assert "examples:" in out
    assert shell.zotctl("frobnicate")[0] == 2
    assert shell.zotctl()[0] == 2


def test_closed_output_is_no_traceback(shell, daemon, session):
    with shell.start("zotctl", "attach", "--plain", "--last") as process:
        process.stdout.close()
        assert process.wait(40) == 1
        assert process.stderr.read() == ""
