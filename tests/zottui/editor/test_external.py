"""The user's own editor."""

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.editor.keyboard import typing
from zottui.editor.external import MARK, page, prompt_of

LONG = "x\n" * 60


def editor(folder, script):
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return {"EDITOR": str(path), "VISUAL": "", "PATH": "/usr/bin:/bin"}


@given(st.text(st.sampled_from("a#\n ")), st.text(st.sampled_from("a#\n")))
def test_an_unchanged_page_returns_the_same_prompt(text, reply):
    assert prompt_of(page(text, reply)) == text


def test_lines_with_a_number_sign_are_the_users_own():
    assert prompt_of(f"# heading\n#include\n\n{MARK}\n# reply\n") == "# heading\n#include"


async def test_ctrl_g_gives_the_full_text_and_the_reply_and_takes_what_comes_back(tmp_path):
    env = editor(tmp_path, f'cp "$1" {tmp_path}/seen; printf "first line\\n%s" "$(cat "$1")" > "$1"')
    async with typing(env=env, last_reply=lambda: "I have\ndone it") as t:
        await t.type("see ")
        await t.paste(LONG)
        await t.type("\x07")
        await t.settled()
        assert (tmp_path / "seen").read_text() == f"see {LONG}\n\n{MARK}\n# I have\n# done it\n"
        assert t.fake_ui.suspensions == 1
        assert t.text.startswith("first line\nsee [pasted #1 · 60 lines]")
        await t.type("\r")
        assert t.texts == [f"first line\nsee {LONG}"]


async def test_an_editor_that_fails_changes_nothing(tmp_path):
    async with typing(env=editor(tmp_path, 'echo no > "$1"; exit 1')) as t:
        await t.type("draft\x07")
        await t.settled()
        assert t.text == "draft"


async def test_a_missing_editor_is_reported():
    async with typing(env={"EDITOR": "/nowhere/ed"}) as t:
        await t.type("draft\x07")
        await t.settled()
        assert t.text == "draft"
        assert "/nowhere/ed" in t.fake_ui.said[0]


async def test_an_editor_command_with_an_unclosed_quote_is_reported():
    async with typing(env={"EDITOR": "vim '"}) as t:
        await t.type("draft\x07")
        await t.settled()
        assert t.text == "draft"
        assert "vim '" in t.fake_ui.said[0]
