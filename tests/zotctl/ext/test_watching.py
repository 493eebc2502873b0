"""`zotctl ext logs` and `tap`, in the real daemon."""

import json
import os
import pty
import signal

import pytest

from zotd.client.errors import CallError


@pytest.fixture
def session(live):
    live.write("echo")
    session = live.session()
    live.until("echo", "ready")
    return session


def test_a_log_is_shown_from_its_end(live, session):
    live.command(session, "shout", "one")
    live.command(session, "shout", "two")
    code, out, err = live.zotctl("ext", "logs", "echo", "-n", "1")
    assert (code, err) == (0, "")
    assert "shouting two" in out
    assert "one" not in out
    page = json.loads(live.zotctl("ext", "logs", "echo", "--json")[1])
    assert (page["v"], page["path"]) == (1, str(live.home / "logs" / "ext-echo.log"))
    assert "shouting one" in page["text"]


def test_a_log_is_followed_until_ctrl_c(live, session):
    live.command(session, "shout", "before")
    with live.shell.start("zotctl", "ext", "logs", "echo", "-f") as process:
        while "before" not in process.stdout.readline():
            pass
        live.command(session, "shout", "after \x1b[2J")
        line = process.stdout.readline()
        assert "shouting after" in line
        assert "\x1b" not in line
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130


def test_log_of_an_unknown_extension_is_an_error(live):
    code, _, err = live.zotctl("ext", "logs", "nobody")
    assert (code, err) == (1, "zotctl: there is no extension nobody and no log with that name\n")
    assert live.zotctl("ext", "logs", "nobody", "-f", "--json")[0] == 1


def tap(live, *flags, **options):
    """A tap that watches already, and says so on the terminal that is the second result."""
    terminal, other_side = pty.openpty()
    process = live.shell.start("zotctl", *flags, stderr=other_side, **options)
    os.close(other_side)
    assert b"watching echo" in os.read(terminal, 4096)
    return process, terminal


def test_a_tap_shows_both_directions_and_how_long_an_answer_took(live, session):
    process, terminal = tap(live, "ext", "tap", "echo")
    with process:
        live.command(session, "shout", "hi")
        asked, answered = [line for line in (process.stdout.readline() for _ in range(2)) if "command" in line]
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    os.close(terminal)
    assert asked[13:].startswith('← {"type":"command_invoked"')
    assert asked[2] == asked[5] == ":"
    assert answered[13] == "→"
    assert '"command_response"' in answered
    assert answered.endswith(" ms\n")


def test_a_tap_can_be_narrowed_and_be_json(live, session):
    process, terminal = tap(live, "ext", "tap", "echo", "--only", "command_response,tool_result", "--json")
    with process:
        live.command(session, "shout", "hi")
        event = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    os.close(terminal)
    assert (event["direction"], json.loads(event["frame"])["type"]) == ("in", "command_response")
    assert event["latency_s"] > 0
    assert rest == ""


@pytest.mark.parametrize(
    ("flags", "variables", "has_colours"),
    [([], {}, True), (["--no-color"], {}, False), ([], {"NO_COLOR": "1"}, False), ([], {"TERM": "dumb"}, False)],
)
def test_directions_have_colours_on_a_terminal_that_may(live, session, flags, variables, has_colours):
    live.shell.env |= variables
    screen, other_side = pty.openpty()
    process, terminal = tap(live, *flags, "ext", "tap", "echo", "--only", "command_response", stdout=other_side)
    os.close(other_side)
    with process:
        live.command(session, "shout", "hi")
        assert (b"\x1b[32m" in os.read(screen, 4096)) is has_colours
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    os.close(screen)


def test_tap_of_a_stopped_extension_fails(live):
    code, _, err = live.zotctl("ext", "tap", "nobody")
    assert code == 1
    assert err.startswith("zotctl: no extension nobody is running here")


def test_asking_again_to_watch_changes_nothing(live, session):
    with live.connect() as connection:
        for _ in range(3):
            connection.call("ext.logs", session=session, name="echo", follow=True)
            connection.call("ext.tap", session=session, name="echo")
        live.command(session, "shout", "once")
        seen = []
        for event in connection.events(10):
            seen.append(event)
            if event["type"] == "ext_frame" and "command_response" in event["frame"]:
                break
        connection.call("ping")  # what came with it is here by now
        seen += [event for _, event in connection._events]
    assert sum(event["type"] == "ext_log" and "shouting once" in event["text"] for event in seen) == 1
    assert sum(event["type"] == "ext_frame" and "command_response" in event["frame"] for event in seen) == 1


def test_what_an_extension_writes_cannot_steer_the_terminal_of_a_tap_in_json(live, session):
    process, terminal = tap(live, "ext", "tap", "echo", "--only", "command_response", "--json")
    with process:
        live.command(session, "shout", "\x9b2J\x7f\u202e")
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
    os.close(terminal)
    assert not set(line) & set("\x9b\x7f\u202e")
    assert "\x9b2J" in json.loads(json.loads(line)["frame"])["display"]


def test_a_directory_that_cannot_be_one_is_a_bad_request(live):
    with live.connect() as connection:
        for command in ("ext.list", "ext.doctor", "ext.logs", "ext.reload"):
            with pytest.raises(CallError) as caught:
                connection.call(command, cwd="/a\0b", name="echo")
            assert caught.value.code == "bad_request"
