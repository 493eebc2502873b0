"""`/btw` in the plain chat."""

from tests.zottui.plain.terminal import chat


def test_a_question_beside_the_conversation_is_answered_and_forgotten(live):
    flags = ("--provider", "ollama", "--model", "m", "--base-url", live.model("purple"))
    with chat(live.cwd, "--new", *flags, env=live.shell.env) as screen:
        screen.until("> ")
        screen.type("/btw\n")
        assert "/btw needs a question" in screen.until("> ")
        screen.type("/btw which colour?\n")
        assert "purple\n(beside the conversation; m, $0.00)" in screen.until("> ")
        screen.type("/sessions\n")
        screen.until("> ")
        with live.connect() as connection:
            (session,) = connection.call("session.list")["sessions"]
            assert connection.call("session.history", session=session["id"])["messages"] == []
