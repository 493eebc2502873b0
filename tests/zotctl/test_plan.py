"""`zotctl plan`, in the real daemon."""

import json
from pathlib import Path

import pytest

from zotd.wire.plan import PlanStep, read_steps


def steps(*texts):
    return [{"text": text} for text in texts]


@pytest.fixture
def planned(live):
    """A session with a plan of two steps."""
    session = live.session()
    with live.connect() as connection:
        connection.call(
            "session.plan_edit",
            session=session,
            revision=0,
            steps=[{"text": "look", "state": "done"}, *steps("change")],
        )
    return session


def editor(live, script):
    """The user's editor is this shell script; `$1` is the file."""
    path = live.home.parent / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    live.shell.env["VISUAL"] = str(path)


def test_a_plan_is_printed_with_the_states_of_its_steps(live, planned):
    code, out, _ = live.zotctl("plan", "--session", "tests")
    assert (code, out.splitlines()[1:]) == (0, ["[x] look", "[ ] change"])
    assert out.startswith("draft by ")
    code, out, _ = live.zotctl("plan", "--last", "--json")
    told = json.loads(out)
    assert (told["v"], told["session"], told["planning"]) == (1, planned, False)
    assert told["plan"]["steps"] == [{"text": "look", "state": "done"}, {"text": "change", "state": "pending"}]


def test_a_session_without_a_plan_says_so(live):
    live.session()
    assert live.zotctl("plan", "--last")[:2] == (0, "there is no plan\n")


def test_a_plan_is_edited_as_text(live, planned):
    editor(live, 'printf "[>] change\\nrun the tests\\n" >> "$1"')
    code, out, err = live.zotctl("plan", "--last", "--edit")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["[x] look", "[ ] change", "[>] change", "[ ] run the tests"]


def test_an_edit_of_a_plan_that_changed_meanwhile_is_refused_and_the_text_kept(live, planned):
    other = live.home.parent / "other"
    other.write_text('#!/bin/sh\nprintf "theirs\\n" > "$1"\n')
    other.chmod(0o700)
    editor(live, f'printf "mine\\n" >> "$1"; VISUAL={other} zotctl plan --last --edit > /dev/null')
    code, _, err = live.zotctl("plan", "--last", "--edit")
    assert code == 1
    assert "the plan was changed meanwhile" in err
    assert "mine\n" in Path(err.strip().rpartition(" ")[2]).read_text()
    assert "[ ] theirs" in live.zotctl("plan", "--last")[1]


def test_nothing_is_changed_when_the_editor_fails(live, planned):
    editor(live, "exit 3")
    code, _, err = live.zotctl("plan", "--last", "--edit")
    assert code == 1
    assert "nothing was changed" in err


def test_text_is_read_with_and_without_marks():
    written = "# a comment\n\n[x] look\n  [>]change\n[ ] \n[?] what\nrun the tests\n"
    assert read_steps(written) == [
        PlanStep("look", "done"),
        PlanStep("change", "active"),
        PlanStep(""),
        PlanStep("[?] what"),
        PlanStep("run the tests"),
    ]
