"""Typing into the editor, and what comes out of it."""

import pytest
from prompt_toolkit.cursor_shapes import CursorShape

from tests.zottui.editor.keyboard import snapshot, typing
from zottui.editor.editor import ROWS
from zottui.editor.keys import KEYS

LEFT, RIGHT, UP, DOWN = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"
BACKSPACE, DELETE = "\x7f", "\x1b[3~"
LONG = "x\n" * 60
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1eb\U0001f1f7"


async def test_enter_sends_the_text_and_empties_the_editor():
    async with typing() as t:
        await t.type("hello\r")
        assert (t.texts, t.text) == (["hello"], "")
        assert t.sent[0][1] == "queue"


async def test_a_blank_editor_sends_nothing():
    async with typing() as t:
        await t.type("  \r")
        assert t.sent == []


async def test_a_refused_submission_stays_in_the_editor():
    async with typing() as t:
        t.takes = False
        await t.type("hello\r")
        assert t.text == "hello"


async def test_steer_submits_into_the_current_run():
    async with typing() as t:
        await t.type("stop that")
        t.editor.submit("steer")
        assert (t.sent[0][1], t.text) == ("steer", "")


@pytest.mark.parametrize("newline", ["\x1b\r", "\n", "\\\r"], ids=["alt+enter", "ctrl+j", "backslash enter"])
async def test_a_new_line_is_made_without_sending(newline):
    async with typing() as t:
        await t.type(f"one{newline}two\r")
        assert t.texts == ["one\ntwo"]


async def test_the_editor_grows_with_its_text_and_then_scrolls():
    async with typing() as t:
        assert t.editor.rows() == 1
        await t.type("a\nb\nc")
        assert t.editor.rows() == 3
        await t.type("\n" * 20)
        assert t.editor.rows() == ROWS
        t.editor.text = "w" * 100
        assert t.editor.rows() == 2


@pytest.mark.parametrize("thing", [FAMILY, FLAG, "e\u0301", "\u5b57"], ids=["family", "flag", "accent", "wide"])
async def test_a_character_is_what_people_see(thing):
    async with typing() as t:
        await t.type(f"a{thing}b{LEFT}{BACKSPACE}")
        assert t.text == "ab"
        t.editor.text = f"a{thing}b"
        await t.type(f"{LEFT}{LEFT}{DELETE}")
        assert t.text == "ab"
        t.editor.text = f"a{thing}b"
        await t.type(f"{LEFT}{LEFT}x{RIGHT}y")
        assert t.text == f"ax{thing}yb"


async def test_two_flags_are_two_characters():
    async with typing() as t:
        await t.type(f"{FLAG}{FLAG}{BACKSPACE}")
        assert t.text == FLAG


async def test_undo_reverts_typing_and_replacing():
    async with typing() as t:
        await t.type("one")
        t.editor.text = "two"
        await t.type("\x1f")
        assert t.text == "one"


async def test_bytes_that_are_no_text_do_not_reach_the_daemon():
    async with typing() as t:
        t.pipe.send_bytes(b"a\xe4b")
        await t.type("\r")
        assert t.texts == ["a\ufffdb"]


async def test_a_long_paste_is_shown_as_a_placeholder_and_sent_in_full():
    async with typing() as t:
        await t.type("see ")
        await t.paste(LONG.replace("\n", "\r\n"))
        assert t.text == "see [pasted #1 · 60 lines]"
        await t.type(" there\r")
        assert t.texts == [f"see {LONG} there"]


async def test_a_short_paste_is_text_and_sends_nothing():
    async with typing() as t:
        await t.paste("one\rtwo\r")
        assert (t.text, t.sent) == ("one\ntwo\n", [])


@pytest.mark.parametrize(
    "keys", [BACKSPACE, LEFT + DELETE, "\x17", "\x1b\x7f"], ids=["backspace", "delete", "ctrl+w", "alt"]
)
async def test_a_placeholder_goes_as_a_whole(keys):
    async with typing() as t:
        await t.type("see ")
        await t.paste(LONG)
        await t.type(keys)
        assert t.text == "see "
        await t.type("\x1f")
        await t.type("\r")
        assert t.texts == [f"see {LONG}"]


async def test_the_cursor_jumps_over_a_placeholder():
    async with typing() as t:
        await t.paste(LONG)
        await t.type(f"{LEFT}a{RIGHT}b")
        assert t.text == "a[pasted #1 · 60 lines]b"


async def test_a_new_prompt_knows_nothing_of_the_last_one():
    async with typing() as t:
        await t.paste(LONG)
        await t.type("\r[pasted #1 · 60 lines]\r")
        assert t.texts[1] == "[pasted #1 · 60 lines]"


async def test_text_typed_after_sending_does_not_join_the_sent_text():
    async with typing() as t:
        await t.type("e\u0301 b\re")
        assert t.text == "e"


async def test_vi_has_its_own_ctrl_r():
    async with typing(is_vi=True) as t:
        await t.type("one")
        await t.press("escape")
        await t.type("ddu\x12")
        assert (t.text, t.fake_ui.dialogs) == ("", [])


async def test_vi_begins_in_insert_and_says_where_it_is():
    async with typing(is_vi=True) as t:
        await t.type("one two")
        assert t.editor.mode == "INSERT"
        await t.press("escape")
        assert t.editor.mode == "NORMAL"
        await t.type("dd")
        assert t.text == ""
        await t.type("ithree")
        assert (t.text, t.editor.mode) == ("three", "INSERT")
        await t.press("escape", "v")
        assert t.editor.mode == "VISUAL"


async def test_vi_is_in_insert_again_after_sending_in_normal():
    async with typing(is_vi=True) as t:
        await t.type("one")
        await t.press("escape")
        await t.type("\r")
        assert (t.texts, t.editor.mode) == (["one"], "INSERT")


@pytest.mark.parametrize("keys", ["x", "dw", "de", "db"])
async def test_vi_deletes_a_placeholder_as_a_whole(keys):
    async with typing(is_vi=True) as t:
        await t.paste(LONG)
        await t.press("escape")
        await t.type(("$" if keys != "db" else "A") + ("" if keys != "db" else "."))
        if keys == "db":
            await t.press("escape")
        await t.type(keys)
        assert "pasted" not in t.text
        assert "lines]" not in t.text


async def test_the_cursor_has_vis_shapes_and_with_emacs_that_of_the_terminal():
    async with typing(is_vi=True) as t:
        assert t.editor.cursor is not None
        assert t.editor.cursor.get_cursor_shape(t.app) is CursorShape.BEAM
        await t.press("escape")
        assert t.editor.cursor.get_cursor_shape(t.app) is CursorShape.BLOCK
    async with typing() as t:
        assert (t.editor.cursor, t.editor.mode) == (None, "")


async def test_up_goes_through_the_prompts_and_down_back_to_the_draft():
    async with typing(env={"ZOT_HOME": "/nowhere"}) as t:
        t.editor.prompts.load(["first", "second\nwith lines"])
        await t.type("draft" + UP)
        assert t.text == "second\nwith lines"
        await t.type(UP)
        assert t.text == "first"
        await t.type(UP + DOWN)
        assert t.text == "second\nwith lines"
        await t.type(DOWN)
        assert t.text == "draft"


async def test_in_many_lines_up_moves_before_it_leaves():
    async with typing() as t:
        t.editor.prompts.load(["earlier"])
        await t.type("one\ntwo" + UP + "X")
        assert t.text == "oneX\ntwo"
        await t.type(UP)
        assert t.text == "earlier"


async def test_a_sent_prompt_is_in_the_history_at_once():
    async with typing() as t:
        await t.type("one\rtwo\r" + UP + UP)
        assert t.text == "one"


async def test_up_in_an_empty_editor_recalls_a_queued_input_before_the_history():
    async with typing() as t:
        t.editor.prompts.load(["earlier"])
        t.recalled = ["waiting"]
        await t.type(UP)
        assert t.text == "waiting"


async def test_a_huge_prompt_comes_back_as_a_placeholder():
    async with typing() as t:
        t.editor.prompts.load(["y" * 20_000])
        await t.type(UP)
        assert t.text == "[pasted #1 · 20,000 characters]"
        await t.type("\r")
        assert t.texts == ["y" * 20_000]


async def test_a_refused_prompt_is_inserted_before_newer_text():
    async with typing() as t:
        await t.paste(LONG)
        await t.type("\rnext")
        t.editor.put_back(t.sent[0][0].draft)
        assert t.text == "[pasted #1 · 60 lines]\nnext"
        assert t.editor.submitted().text == f"{LONG}\nnext"


async def test_typing_replaces_a_refused_prompt_and_other_keys_keep_it():
    async with typing() as t:
        await t.type("in vain\r")
        draft = t.sent[0][0].draft
        t.editor.give_back(draft)
        assert t.text == "in vain"
        await t.type("/help")
        assert t.text == "/help"
        await t.type("\x1f" * 5)
        assert t.text == "in vain"
        t.editor.text = ""
        t.editor.give_back(draft)
        await t.type("\x01so ")
        assert t.text == "so in vain"
        t.editor.text = ""
        t.editor.give_back(draft)
        await t.type("\r")
        assert t.texts == ["in vain", "in vain"]


async def test_every_key_has_words_for_a_list():
    async with typing():
        assert [key.label for key in KEYS][:2] == ["enter", "alt+enter, ctrl+j"]
        assert all(key.what for key in KEYS)


async def test_a_session_brings_its_prompts_and_takes_its_draft_along(tmp_path):
    async with typing(env={"ZOT_HOME": str(tmp_path)}) as t:
        await t.type("typed before")
        t.editor.attached(snapshot("s_1", ["of one"]))
        await t.restored()
        assert t.text == "typed before"
        t.editor.attached(snapshot("s_2", ["of two"]))
        await t.restored()
        assert t.text == ""
        await t.type("in two" + UP)
        assert t.text == "of two"
        t.editor.attached(snapshot("s_1", ["of one"]))
        await t.restored()
        assert t.text == "typed before"
        t.editor.close()


async def test_a_reconnect_changes_nothing_that_was_typed(tmp_path):
    async with typing(env={"ZOT_HOME": str(tmp_path)}) as t:
        t.editor.attached(snapshot())
        await t.type("draft")
        t.editor.attached(snapshot(prompts=["said meanwhile"]))
        assert t.text == "draft"
        await t.type(UP)
        assert t.text == "said meanwhile"
        t.editor.close()
