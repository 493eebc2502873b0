"""The plain chat asks about calls, on a real terminal, against the real daemon."""

from contextlib import contextmanager

import pytest

from tests.zottui.plain import terminal


def bash(command):
    return {"steps": [{"type": "call", "name": "bash", "args": {"command": command}}]}


TOUCH = bash("touch out")
DONE = {"steps": [{"type": "text", "deltas": ["done"]}]}


@pytest.fixture
def chat(live):
    """The id and the screen of a session that asks, where this was typed; its model says these, one after the other."""

    @contextmanager
    def chat(*replies, typed="go\n"):
        session = live.session(live.scripted(*replies), mode="ask")
        with terminal.chat(live.cwd, "--session", session, env=live.shell.env) as screen:
            screen.until("> ")
            screen.type(typed)
            yield session, screen

    return chat


def asked(screen):
    return screen.until("(n REASON): ")


def answer(screen, line):
    """Wait for a question, and answer it."""
    asked(screen)
    screen.type(f"{line}\n")


def test_a_yes_lets_the_call_run(live, chat):
    with chat(TOUCH, DONE) as (_, screen):
        said = asked(screen)
        offers = "1 for this session: touch out *\n2 always: touch out *"
        keys = "y once, s for this session, a always, 1 or 2 as listed, n no "
        assert f"bash wants to run:\n  touch out\n{offers}\n{keys}" in said
        assert not (live.cwd / "out").exists()
        screen.type("perhaps\n")
        answer(screen, "y")
        assert screen.until("> ").endswith("(zot has allowed it)\nzot: done\n")
    assert (live.cwd / "out").exists()


def test_a_no_with_its_reason(live, chat):
    with chat(TOUCH, DONE) as (_, screen):
        answer(screen, "n not here")
        assert "denied by the user: not here" in screen.until("> ")
    assert not (live.cwd / "out").exists()


def test_for_this_session_is_not_asked_again(live, chat):
    with chat(TOUCH, TOUCH, DONE) as (_, screen):
        answer(screen, "s")
        assert "wants to run" not in screen.until("done\n")


def test_always_shows_the_rule_and_asks_again(live, chat):
    with chat(TOUCH, DONE) as (_, screen):
        answer(screen, "a")
        assert 'match = "touch out"' in screen.until("[y/N] ")
        screen.type("n\n")
        answer(screen, "a")
        screen.until("[y/N] ")
        screen.type("y\n")
        screen.until("done\n")
    assert 'match = "touch out"' in (live.home / "config.toml").read_text()


def test_a_listed_offer_is_chosen_by_its_number(live, chat):
    with chat(TOUCH, bash("touch out other"), DONE) as (_, screen):
        answer(screen, "1")
        assert "wants to run" not in screen.until("done\n")
    assert (live.cwd / "other").exists()


def test_what_no_rule_can_allow_offers_none(live, chat):
    with chat(bash("touch a & touch b"), DONE) as (_, screen):
        assert asked(screen).endswith("y once, n no ")
        screen.type("y\n")
        screen.until("done\n")


def test_a_decision_of_another_client_is_reported(live, chat):
    with chat(TOUCH, DONE) as (session, screen):
        asked(screen)
        with live.connect() as connection:
            connection.call("hello", client={"name": "ben"})
            (question,) = connection.call("approval.list", session=session)["approvals"]
            decision = {"approval": question["approval"], "args_digest": question["args_digest"]}
            connection.call("approve", decision, session=session, decision="deny")
        assert "(ben has denied it)" in screen.until("done\n")


def test_ctrl_c_aborts_the_run_and_ctrl_d_leaves_the_question_to_others(live, chat):
    with chat(TOUCH, TOUCH, DONE) as (session, screen):
        asked(screen)
        screen.interrupt()
        assert "(aborted)" in screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.type("\x04")
        code, rest = screen.end()
    assert (code, "return with" in rest) == (0, True)
    with terminal.chat(live.cwd, "--session", session, env=live.shell.env) as screen:
        assert "touch out" in asked(screen)
        screen.type("y\n")
        screen.until("done\n")
    assert (live.cwd / "out").exists()


def test_input_typed_ahead_is_no_answer(live, chat):
    with chat(TOUCH, DONE, typed="go\ny\n") as (_, screen):
        answer(screen, "n")
        screen.until("(zot has denied it)")
    assert not (live.cwd / "out").exists()


STEPS = {"steps": [{"text": "look"}, {"text": "change"}]}
PLAN = {"steps": [{"type": "call", "name": "plan", "args": STEPS}]}


def test_a_plan_is_printed_once_for_each_change_and_decided_about(live, chat):
    with chat(PLAN, PLAN, DONE, typed="/plan make it\n") as (_, screen):
        said = asked(screen)
        assert "plan (proposed)\n  [ ] look\n  [ ] change\n" in said
        assert "the model proposes a plan:\n  [ ] look\n  [ ] change\ny once, n no " in said
        screen.type("n too short\n")
        said = asked(screen)
        assert "plan (rejected: too short)\n  [ ] look\n" in said
        screen.type("y\n")
        said = screen.until("done\n")
        assert said.count("plan (approved)") == 1
