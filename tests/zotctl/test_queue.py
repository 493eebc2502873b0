"""`zotctl queue`, `zotctl continue` and `zot --continue`, in the real daemon."""

import json
import os
import signal

import pytest


def bash(command):
    return {"steps": [{"type": "call", "name": "bash", "args": {"command": command}}]}


def says(text):
    return {"steps": [{"type": "text", "deltas": [text]}]}


@pytest.fixture
def busy(live):
    """A session in which a command runs until the test opens a pipe."""
    os.mkfifo(live.cwd / "pipe")
    url = live.scripted(bash("echo started; cat < pipe"), *map(says, ("one", "two", "three", "four")))
    session = live.session(url)
    begin(live, session, "tool_progress")
    return session


def begin(live, session, sign):
    """Send a prompt, and wait for an event of this type."""
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("prompt", session=session, message="go")
        assert any(event["type"] == sign for event in connection.events(10))


def waiting(live):
    code, out, _ = live.zotctl("queue", "--session", "tests", "--json")
    assert code == 0
    return json.loads(out)


def texts(live):
    return [(item["text"], item["mode"]) for item in waiting(live)["items"]]


def send(live, *words):
    return live.zotctl("send", "--session", "tests", *words)


def until_it_rests(live, session):
    """The words of the user that the model was shown, in order."""
    with live.connect() as connection:
        connection.call("subscribe", topics=["sessions"])
        state = connection.call("session.get", session=session)["state"]
        if state == "running":
            resting = (event for event in connection.events(10) if event["type"] == "session_updated")
            state = next(event["state"] for event in resting if event["state"] != "running")
        messages = connection.call("get_messages", session=session)["messages"]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]


def test_queue_lists_withdraws_and_moves_by_id_prefix(live, busy):
    for words in ("a", "b", "c"):
        send(live, words)
    first, _, last = (item["id"] for item in waiting(live)["items"])
    assert live.zotctl("queue", "--session", "tests", "withdraw", first)[0] == 0
    code, out, _ = live.zotctl("queue", "--session", "tests", "move", last, "1")
    assert (code, [line.split()[-1] for line in out.splitlines()]) == (0, ["TEXT", "c", "b"])
    code, _, err = live.zotctl("queue", "--session", "tests", "withdraw", first)
    assert code == 1
    assert "no queued input has an ID" in err
    assert "more than one" in live.zotctl("queue", "--session", "tests", "withdraw", "i_")[2]
    assert "use withdraw ID" in live.zotctl("queue", "--session", "tests", "drop", last)[2]


def test_a_prompt_may_join_what_runs_wait_or_be_refused(live, busy):
    assert send(live, "wait")[1].endswith("queued at position 1\n")
    assert send(live, "--steer", "join")[1].endswith("queued at position 2\n")
    code, _, err = send(live, "--reject", "never")
    assert (code, "busy" in err) == (1, True)
    assert send(live, "--reject", "--steer", "x")[0] == 2
    assert texts(live) == [("wait", "queue"), ("join", "steer")]
    (live.cwd / "pipe").write_text("")
    assert until_it_rests(live, busy) == ["go", "join", "wait"]


def test_continue_resumes_a_held_queue(live, busy):
    assert live.zotctl("continue", "--session", "tests")[0] == 1, "it is at work"
    send(live, "and then this")
    assert live.zotctl("send", "--session", "tests", "/stop")[0] == 0
    until_it_rests(live, busy)
    assert "held" in live.zotctl("queue", "--session", "tests")[1]
    code, out, _ = live.zotctl("continue", "--session", "tests", "--wait")
    assert (code, out) == (0, "one\n")
    until_it_rests(live, busy)
    code, _, err = live.zotctl("continue", "--session", "tests")
    assert code == 1
    assert "nothing to continue" in err


@pytest.fixture
def cut(live):
    """A session whose run was interrupted by a crash during the model's reply."""
    url = live.scripted(
        {"steps": [{"type": "text", "deltas": ["Half a "]}, {"type": "hang"}]}, *map(says, ("whole", "more"))
    )
    session = live.session(url, provider="ollama", model="m", secrets=None)
    begin(live, session, "text_delta")
    live.daemon.end(signal.SIGKILL)
    live.daemon.start()
    return session


def test_zot_continue_continues_the_run_and_prints_the_answer(live, cut):
    assert live.zot("-p", "--continue") == (0, "whole\n", "")
    code, _, err = live.zot("-p", "--continue")
    assert code == 1
    assert "nothing to continue" in err


def test_zot_continue_with_a_prompt_continues_the_run_first(live, cut):
    assert live.zot("-p", "--continue", "and more") == (0, "more\n", "")
    assert until_it_rests(live, cut) == ["go", "and more"]


def test_zot_continue_as_json_prints_both_runs(live, cut):
    code, out, _ = live.zot("--json", "--continue", "and more")
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert (code, kinds.count("done"), kinds[-1]) == (0, 2, "done")


# --- a model that fails ---------------------------------------------------------------------------------------


def test_a_run_that_waits_for_its_model_is_listed_with_the_reason_and_retry_tries_at_once(live):
    url = live.scripted({"status": 529, "headers": {"retry-after": "20"}}, says("at last"))
    session = live.session(url)
    begin(live, session, "retry")
    code, out, _ = live.zotctl("sessions")
    assert code == 0
    assert "waiting for the model, next try in " in out
    assert "HTTP 529" in out
    code, out, _ = live.zotctl("retry", "--session", "tests")
    assert (code, out) == (0, f"{session}: retrying now\n")
    assert until_it_rests(live, session) == ["go"]
    code, out, err = live.zotctl("retry", "--session", "tests")
    assert code == 1
    assert "there is nothing to retry" in out + err


def test_a_sender_that_waits_behind_a_run_that_is_stopped_is_told_that_its_prompt_is_held(live, busy):
    with live.connect() as connection:
        connection.call("attach", session=busy)
        waits = live.shell.start("zotctl", "send", "--session", "tests", "--wait", "and then")
        events = (event for event in connection.events(20) if event["type"] == "queue_changed")
        assert [item["text"] for item in next(events)["items"]] == ["and then"]
        connection.call("abort", session=busy)
    with waits:
        _, err = waits.communicate(timeout=30)
    assert waits.returncode == 1
    assert "held in the session's queue; `zotctl continue`" in err
    assert texts(live) == [("and then", "queue")]
