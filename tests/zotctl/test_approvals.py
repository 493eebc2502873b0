"""`zotctl approvals`, `approve` and `deny`, against the real daemon."""

import json
import os
import pathlib
import pty

import pytest


@pytest.fixture
def waiting(live):
    """Starts a session whose model wants to run a command, and waits until it asks; the question."""

    def waiting(command="touch out"):
        call = {"type": "call", "name": "bash", "args": {"command": command}}
        done = {"type": "text", "deltas": ["done"]}
        session = live.session(live.scripted({"steps": [call]}, {"steps": [done]}), mode="ask")
        with live.connect() as connection:
            connection.call("attach", session=session)
            connection.call("prompt", session=session, message="go")
            return next(event for event in connection.events(10) if event["type"] == "approval_requested")

    return waiting


def outcome(live, question):
    """Wait for the end of the run."""
    with live.connect() as connection:
        session = question["session"]
        connection.call("attach", session=session, after={"epoch": _epoch(connection), "seq": question["seq"]})
        return list(_until_done(connection))


def _epoch(connection):
    return connection.call("daemon.status")["epoch"]


def _until_done(connection):
    for event in connection.events(10):
        yield event
        if event["type"] == "done":
            return


def test_approvals_lists_pending_calls(live, waiting):
    assert live.zotctl("approvals") == (0, "", "")
    question = waiting("touch 'a\x1b[2J'")
    code, out, _ = live.zotctl("approvals")
    assert (code, question["approval"] in out, question["session"] in out) == (0, True, True)
    assert "bash wants to run:\n  touch 'a\\x1b[2J'" in out
    listed = json.loads(live.zotctl("approvals", "--json")[1])
    assert (listed["v"], [one["approval"] for one in listed["approvals"]]) == (1, [question["approval"]])


def test_what_leads_out_of_the_jail_is_listed_with_the_reason_and_allowed_here(live):
    outside = live.home.parent / "user" / "notes"
    call = {"type": "call", "name": "write", "args": {"path": str(outside), "content": "x"}}
    session = live.session(
        live.scripted({"steps": [call]}, {"steps": [{"type": "text", "deltas": ["done"]}]}), mode="workspace"
    )
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("prompt", session=session, message="go")
        question = next(event for event in connection.events(10) if event["type"] == "approval_requested")
    assert f"it would change {outside}, outside of what the jail" in live.zotctl("approvals")[1]
    assert live.zotctl("approve", question["approval"])[0] == 0
    outcome(live, question)
    assert outside.read_text() == "x"


def test_approve_accepts_an_id_prefix(live, waiting):
    question = waiting()
    code, out, err = live.zotctl("approve", question["approval"][:-1])
    assert (code, out) == (0, f"{question['approval']} is allowed\n")
    assert "touch out" in err
    outcome(live, question)
    assert (live.cwd / "out").exists()


def test_deny_passes_the_reason_and_prevents_the_call(live, waiting):
    question = waiting()
    code, out, _ = live.zotctl("deny", question["approval"], "--reason", "not now", "--json")
    assert (code, json.loads(out)["decision"]) == (0, "deny")
    events = outcome(live, question)
    (resolved,) = [event for event in events if event["type"] == "approval_resolved"]
    assert (resolved["by"], resolved["reason"]) == ("zotctl", "not now")
    assert not (live.cwd / "out").exists()


def test_approval_cannot_be_decided_twice(live, waiting):
    question = waiting()
    live.zotctl("deny", question["approval"])
    code, _, err = live.zotctl("approve", question["approval"])
    assert (code, "no pending approval has the ID" in err) == (1, True)


def test_ambiguous_id_is_refused(live, waiting):
    waiting(), waiting()
    code, _, err = live.zotctl("approve", "a_")
    assert (code, "is ambiguous" in err) == (1, True)
    for question in json.loads(live.zotctl("approvals", "--json")[1])["approvals"]:
        live.zotctl("deny", question["approval"])


def test_a_rule_is_shown_and_saved_only_after_a_yes(live, waiting):
    question = waiting()
    code, _, err = live.zotctl("approve", "--always", question["approval"])
    assert (code, "without a terminal" in err) == (1, True)
    terminal, other_side = pty.openpty()
    with live.shell.start(
        "zotctl", "approve", "--always", question["approval"], stdin=other_side, stderr=other_side
    ) as process:
        os.close(other_side)
        said = ""
        while "[y/N]" not in said:
            said += os.read(terminal, 4096).decode().replace("\r\n", "\n")
        os.write(terminal, b"y\n")
        out, _ = process.communicate(timeout=40)
    os.close(terminal)
    assert (process.returncode, out) == (0, f"{question['approval']} is allowed\n")
    assert question["rule"] in said
    outcome(live, question)
    assert (live.home / "config.toml").read_text() == question["rule"]


def test_a_script_may_save_the_rule_without_being_asked(live, waiting):
    question = waiting()
    code, _, err = live.zotctl("approve", "--always", "--yes", question["approval"])
    assert (code, question["rule"] in err) == (0, True)
    outcome(live, question)


def test_approve_choice_prefix_adds_a_prefix_rule(live, waiting):
    question = waiting("touch out -m")
    listed = live.zotctl("approvals")[1]
    assert "  --session --choice prefix: touch out *\n  --always --choice prefix: touch out *\n" in listed
    code, _, err = live.zotctl("approve", "--session", "--choice", "edits", question["approval"])
    assert (code, "--session --choice edits is not available for this call" in err) == (1, True)
    code, _, err = live.zotctl("approve", "--session", "--choice", "prefix", question["approval"])
    assert (code, 'match = "touch out *"' in err) == (0, True)
    outcome(live, question)


def test_call_without_a_possible_rule_can_only_be_approved_once(live, waiting):
    question = waiting("touch a & touch b")
    for flag in ("--session", "--always"):
        code, _, err = live.zotctl("approve", flag, "--yes", question["approval"])
        assert (code, "approve it once" in err) == (1, True)
    assert live.zotctl("approve", question["approval"])[0] == 0
    outcome(live, question)


def model_of(live, command="touch out"):
    """Flags for a session whose model wants to run a command."""
    call = {"type": "call", "name": "bash", "args": {"command": command}}
    url = live.scripted({"steps": [call]}, {"steps": [{"type": "text", "deltas": ["done"]}]})
    return "--provider", "openai", "--model", "any", "--base-url", url, "--api-key", "k"


def test_an_unattended_prompt_is_denied_its_calls_with_the_option_that_allows_them(live):
    code, out, _ = live.zot("go", "--mode", "ask", "--json", *model_of(live))
    assert code == 0
    (result,) = [event for event in map(json.loads, out.splitlines()) if event["type"] == "tool_result"]
    assert result["is_error"]
    assert "--wait" in result["content"][0]["text"]
    assert not (live.cwd / "out").exists()


def test_wait_flag_keeps_calls_pending_for_approval(live):
    with live.connect() as connection:
        connection.call("subscribe", topics=["sessions"])
        process = live.shell.start("zotd.cli", "-p", "go", "--mode", "ask", "--wait", *model_of(live))
        next(event for event in connection.events(10) if event.get("state") == "waiting")
    (question,) = json.loads(live.zotctl("approvals", "--json")[1])["approvals"]
    assert live.zotctl("approve", question["approval"])[0] == 0
    assert process.communicate(timeout=30)[0] == "done\n"
    assert (live.cwd / "out").exists()


def test_the_mode_of_a_session_is_shown_and_set(live):
    session = live.session()
    assert live.zotctl("mode", "--session", session)[:2] == (0, "yolo\n")
    assert live.zotctl("mode", "--session", session, "ask")[:2] == (0, "ask\n")
    assert json.loads(live.zotctl("mode", "--last", "--json")[1]) == {"v": 1, "session": session, "mode": "ask"}


def test_grants_of_a_session_are_listed_and_taken_back(live, waiting):
    question = waiting()
    key = question["session"]
    assert live.zotctl("approve", question["approval"], "--session")[0] == 0
    outcome(live, question)
    code, out, _ = live.zotctl("grants", "--session", key)
    assert (code, out.split()) == (0, ["TOOL", "MATCH", "1", "bash", "touch", "out"])
    for nonsense in ("2", "0", "-1", "x", "\u0661", ""):
        code, out, error = live.zotctl("grants", "--session", key, f"--revoke={nonsense}")
        assert (code, out) == (1, "")
        assert "is not the number of a grant of this session: there are 1" in error
    assert json.loads(live.zotctl("grants", "--session", key, "--revoke", "1", "--json")[1])["grants"] == []
    assert live.zotctl("grants", "--session", key, "--revoke", "all")[0] == 0


def editor(live, script):
    """The user's editor is this shell script; `$1` is the file."""
    path = live.home.parent / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    live.shell.env["VISUAL"] = str(path)


def test_a_call_is_approved_with_other_arguments(live, waiting):
    question = waiting("touch out")
    editor(live, """sed -i 's/touch out/touch other/' "$1" """)
    code, out, _ = live.zotctl("approve", question["approval"], "--edit")
    assert (code, out) == (0, f"{question['approval']} is allowed\n")
    outcome(live, question)
    assert sorted(path.name for path in live.cwd.glob("o*")) == ["other"]


def test_a_text_that_is_no_arguments_is_kept_and_decides_nothing(live, waiting):
    question = waiting()
    editor(live, 'echo nonsense > "$1"')
    code, _, err = live.zotctl("approve", question["approval"], "--edit")
    assert (code, "the arguments must be a JSON object" in err) == (1, True)
    kept = err.split("your text is in ")[1].strip()
    with pathlib.Path(kept).open(encoding="utf-8") as file:
        assert file.read() == "nonsense\n"
    assert question["approval"] in live.zotctl("approvals")[1]
    assert live.zotctl("approve", question["approval"], "--edit", "--session")[0] == 1


def test_a_plan_is_approved_with_changes(live):
    steps = [{"text": "look", "state": "done"}, {"text": "cut"}]
    call = {"type": "call", "name": "plan", "args": {"steps": steps}}
    session = live.session(live.scripted({"steps": [call]}, {"steps": [{"type": "text", "deltas": ["done"]}]}))
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("run_command", session=session, name="plan", args="cut it")
        question = next(event for event in connection.events(10) if event["type"] == "approval_requested")
    editor(live, """sed -i 's/cut/measure/' "$1"; echo '[ ] cut' >> "$1" """)
    assert live.zotctl("approve", question["approval"], "--edit")[0] == 0
    outcome(live, question)
    assert live.zotctl("plan", "--last")[1].splitlines()[1:] == ["[x] look", "[ ] measure", "[ ] cut"]
