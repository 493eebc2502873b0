"""The plain chat asks about calls, on a real terminal, against the real daemon."""

import pytest

from tests.zottui import terminal


def bash(command):
    return {"steps": [{"type": "call", "name": "bash", "args": {"command": command}}]}


TOUCH = bash("touch out")
DONE = {"steps": [{"type": "text", "deltas": ["done"]}]}


@pytest.fixture
def chat(live):
    """A chat in a session that asks, whose model says these, one after the other."""

    def chat(*replies):
        session = live.session(live.scripted(*replies), mode="ask")
        return session, terminal.chat(live.cwd, "--session", session, env=live.shell.env)

    return chat


def asked(screen):
    return screen.until("(n REASON): ")


def test_a_yes_lets_the_call_run(live, chat):
    _, started = chat(TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        said = asked(screen)
        assert "bash wants to run:\n  touch out\ny once, s for this session, a always, n no " in said
        assert not (live.cwd / "out").exists()
        screen.type("perhaps\n")
        asked(screen)
        screen.type("y\n")
        assert screen.until("> ").endswith("(zot has allowed it)\ndone\n")
    assert (live.cwd / "out").exists()


def test_a_no_with_its_reason(live, chat):
    _, started = chat(TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.type("n not here\n")
        assert "denied by the user: not here" in screen.until("> ")
    assert not (live.cwd / "out").exists()


def test_for_this_session_is_not_asked_again(live, chat):
    _, started = chat(TOUCH, TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.type("s\n")
        assert "wants to run" not in screen.until("done\n")


def test_always_shows_the_rule_and_asks_again(live, chat):
    _, started = chat(TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.type("a\n")
        assert 'match = "touch out"' in screen.until("[y/N] ")
        screen.type("n\n")
        asked(screen)
        screen.type("a\n")
        screen.until("[y/N] ")
        screen.type("y\n")
        screen.until("done\n")
    assert 'match = "touch out"' in (live.home / "config.toml").read_text()


def test_what_no_rule_can_allow_offers_none(live, chat):
    _, started = chat(bash("touch a && touch b"), DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        assert asked(screen).endswith("y once, n no ")
        screen.type("y\n")
        screen.until("done\n")


def test_when_somebody_else_is_quicker_it_says_who(live, chat):
    session, started = chat(TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        asked(screen)
        with live.connect() as connection:
            connection.call("hello", client={"name": "ben"})
            (question,) = connection.call("approval.list", session=session)["approvals"]
            decision = {"approval": question["approval"], "args_digest": question["args_digest"]}
            connection.call("approve", decision, session=session, decision="deny")
        assert "(ben has denied it)" in screen.until("done\n")


def test_ctrl_c_aborts_the_run_and_ctrl_d_leaves_the_question_to_others(live, chat):
    session, started = chat(TOUCH, TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.interrupt()
        assert "(aborted)" in screen.until("> ")
        screen.type("go\n")
        asked(screen)
        screen.type("\x04")
        code, rest = screen.end()
    assert (code, "come back with" in rest) == (0, True)
    with terminal.chat(live.cwd, "--session", session, env=live.shell.env) as screen:
        assert "touch out" in asked(screen)
        screen.type("y\n")
        screen.until("done\n")
    assert (live.cwd / "out").exists()


def test_what_was_typed_ahead_is_no_answer(live, chat):
    _, started = chat(TOUCH, DONE)
    with started as screen:
        screen.until("> ")
        screen.type("go\ny\n")
        asked(screen)
        screen.type("n\n")
        screen.until("(zot has denied it)")
    assert not (live.cwd / "out").exists()
