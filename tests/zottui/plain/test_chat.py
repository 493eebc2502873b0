"""The plain chat on a real terminal, against a fake daemon."""

import os
from pathlib import Path

import pytest

import zotd
from tests.zottui.plain import terminal
from zotd.client.yolo_warning import WARNING
from zotd.testing.fake_daemon import running
from zotd.wire import events
from zotd.wire.content import ShellRun, Text

TIME = "2026-11-21T20:11:18.919Z"


@pytest.fixture
def daemon(tmp_path):
    with running(str(tmp_path / "zotd.sock")) as fake:
        yield fake


def chat(folder, *args):
    env = {
        "ZOTD_SOCKET": str(folder / "zotd.sock"),
        "PYTHONPATH": str(Path(zotd.__file__).parent.parent),
        "PATH": os.environ["PATH"],
        "NO_COLOR": "1",
    }
    return terminal.chat(folder, *args, env=env)


def test_a_prompt_is_answered_and_ctrl_d_leaves_with_the_way_back(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        screen.type("tool\n")
        assert screen.until("> ") == "tool\nzot: I look.\n* bash true\nzot: looked\n"
        screen.type("\x04")
        code, rest = screen.end()
    (session,) = daemon.sessions
    assert code == 0
    assert rest.strip() == f"the session is kept; return with: zot --session {session}"


def test_words_on_the_command_line_are_the_first_prompt(daemon, tmp_path):
    with chat(tmp_path, "say", "this", "--model", "m") as screen:
        assert screen.until("\n") == f"fake m in {tmp_path} (/help)"
        assert screen.until("> ") == "zot: say this\n"


def test_ctrl_c_ends_the_run_and_at_the_prompt_the_chat(daemon, tmp_path):
    with chat(tmp_path, "hang on") as screen:
        screen.until("on")
        screen.interrupt()
        assert "(aborted)" in screen.until("> ")
        screen.interrupt()
        code, rest = screen.end()
    assert code == 0
    assert "return with" in rest


def test_what_others_do_is_shown_between_prompts(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        (session,) = daemon.sessions.values()
        daemon.do(lambda: session.show(events.Notice("info", "somebody was here")))
        assert screen.until("> ") == "\nsomebody was here\n"


def test_roles_are_named(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        (session,) = daemon.sessions.values()
        asked, answered = events.UserMessage([Text("one\ntwo")], TIME), events.AssistantMessage([Text("three")], TIME)
        daemon.do(lambda: session.show(asked, events.AssistantStart(), answered))
        assert screen.until("> ") == "\nyou: one\ntwo\nzot: three\n"


def test_a_long_silence_is_announced_once(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        (session,) = daemon.sessions.values()
        screen.type("hang\n")
        assert screen.until("thinking") == "hang\nzot: "
        daemon.do(lambda: session.show(events.Notice("info", "a notice")))
        assert screen.until("working…\n") == "\na notice\n"
        daemon.do(lambda: session.show(events.ThinkingDelta("hm")))
        screen.interrupt()
        assert "working" not in screen.until("> ")


def test_a_command_of_a_person_is_shown_as_one_and_not_as_a_prompt(daemon, tmp_path):
    run = ShellRun(id="i_1", command="ls", context=True, exit=0)
    with chat(tmp_path) as screen:
        screen.until("> ")
        (session,) = daemon.sessions.values()
        daemon.do(lambda: session.show(events.UserMessage([Text("$ ls\n\na.txt\n[exit 0]")], TIME, shell=run)))
        assert screen.until("> ") == "\n$ ls\n\na.txt\n[exit 0]\n"


def test_a_segment_that_changes_all_the_time_is_shown_once_for_each_line_that_is_typed(daemon, tmp_path):
    def show(*shown):
        daemon.do(lambda: session.show(*shown))

    with chat(tmp_path) as screen:
        screen.until("> ")
        (session,) = daemon.sessions.values()
        show(events.ExtStatus("clock", "time", "12:00 \x1b[2J"))
        assert screen.until("> ") == "\n[clock] 12:00 ^[[2J\n"
        show(events.ExtStatus("clock", "time", "12:01"), events.Notice("info", "tick"))
        assert screen.until("> ") == "\ntick\n"
        screen.type("/model\n")
        assert screen.until("> ") == "/model\nfake-1\n[clock] 12:01\n"
        show(events.ExtStatus("clock", "time", ""), events.Notice("info", "gone"))
        assert screen.until("> ") == "\ngone\n"


def test_the_trust_flag_applies_to_each_session_of_the_chat(daemon, tmp_path):
    with chat(tmp_path, "--trust") as screen:
        screen.until("> ")
        screen.type("/new\n")
        screen.until("> ")
    assert [session.env["ZOT_TRUST"] for session in daemon.sessions.values()] == ["1", "1"]


def test_the_commands(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        for typed, shown in [
            ("/help", "/exit"),
            ("/model fake-2", "fake-1"),
            ("/compact", "(compacted)"),
            ("/clear", "context is empty"),
            ("/nonsense", "there is no /nonsense"),
            ("/new", "(/help)"),
        ]:
            screen.type(f"{typed}\n")
            assert shown in screen.until("> ").removeprefix(typed)
        assert len(daemon.sessions) == 2
        screen.type("/sessions\n")
        listed = screen.until("> ")
        assert [line[:2] for line in listed.splitlines()[1:]] == ["* ", "  "]
        screen.type("/exit\n")
        assert screen.end()[0] == 0


def test_an_error_is_printed_and_the_chat_continues(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        screen.type("fail no key\n")
        assert screen.until("> ") == "fail no key\nerror: no key\n"
        daemon.do(daemon.sessions.clear)
        screen.type("hello\n")
        assert "error: there is no session" in screen.until("> ")


def test_a_connection_that_was_cut_is_made_again(daemon, tmp_path):
    with chat(tmp_path) as screen:
        screen.until("> ")
        daemon.do(daemon.cut_all)
        assert screen.until("> ") == "(lost the connection to zotd; reconnecting)\n(reconnected)\n"
        screen.type("say this\n")
        assert screen.until("> ") == "say this\nzot: say this\n"


def test_a_session_in_yolo_begins_with_a_warning(daemon, tmp_path):
    with chat(tmp_path, "-y") as screen:
        assert screen.until("> ").startswith(f"zot: {WARNING}\n")
