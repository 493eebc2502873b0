"""`zotctl send` with slash commands, in the real daemon."""

import json

import pytest


@pytest.fixture
def session(live):
    live.write("echo")
    return live.session(live.model("It is done."))


def send(live, *words, **options):
    return live.zotctl("send", "--session", "tests", *words, **options)


def test_the_text_of_a_command_is_printed(live, session):
    assert send(live, "/shout  hello   world ") == (0, "HELLO   WORLD\n", "")
    assert send(live, "/draft a prompt", "--wait") == (0, "a prompt\n", "")
    answer = json.loads(send(live, "/echo:shout x", "--json")[1])
    assert answer == {"v": 1, "session": session, "action": "display", "extension": "echo", "text": "X"}


def test_send_wait_follows_the_run_of_a_slash_command(live, session):
    assert send(live, "/ask what is up?", "--wait") == (0, "It is done.\n", "")
    assert send(live, "/ask again") == (0, f"{session}: started\n", "")


def test_send_runs_slash_commands_of_the_daemon(live, session):
    assert send(live, "/clear") == (0, f"{session}: done\n", "")
    assert send(live, "/reload-ext")[1].startswith("extensions reloaded: 1 loaded")


def test_unknown_command_lists_the_known_ones(live, session):
    code, out, err = send(live, "/nope")
    assert (code, out) == (1, "")
    assert "/shout" in err


def test_text_that_only_resembles_a_command_is_a_prompt(live, session):
    for words, message in ("//shout x", "/shout x"), ("/usr/bin is full", "/usr/bin is full"):
        assert send(live, words, "--wait")[1] == "It is done.\n"
        assert prompts(live, session)[-1] == message
    assert send(live, "-", "--wait", piped="/shout x")[1] == "It is done.\n"
    assert prompts(live, session)[-1] == "/shout x"


def test_slash_command_rejects_when_busy(live, session):
    code, _, err = send(live, "/shout x", "--when-busy", "reject")
    assert code == 1
    assert "apply to prompts" in err


def prompts(live, session):
    with live.connect() as connection:
        messages = connection.call("get_messages", session=session)["messages"]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]
