"""Earlier prompts of the session, and of all sessions."""

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.editor.keyboard import typing
from zotd.client.errors import CallError
from zotd.wire.api import PromptHistory
from zotd.wire.content import Image, Message, ShellRun, Text
from zotd.wire.reports import PastPrompt, PromptPage
from zottui.editor.history import Prompts, prompts_of

UP = "\x1b[A"
WORDS = st.text(st.sampled_from("abc"), min_size=1, max_size=3)


def page(*texts):
    return PromptPage(
        [PastPrompt(text, f"s_{n}", f"/home/me/p{n}", "2026-11-22T08:00:00.000Z") for n, text in enumerate(texts)]
    )


def found(asked):
    assert isinstance(asked, PromptHistory)
    return page(f"found {asked.query}", "another")


def test_prompts_of_messages_are_those_of_users():
    said = [
        Message("user", [Text("one"), Image("image/png", 3)], ""),
        Message("assistant", [Text("no")], ""),
        Message("user", [Image("image/png", 3)], ""),
        Message("user", [Text("two"), Text("three")], ""),
        Message("user", [Text("$ ls\n\na.py")], "", shell=ShellRun(id="r_1", command="ls", context=True)),
    ]
    assert prompts_of(said) == ["one", "two\nthree"]


@given(st.lists(WORDS, max_size=5), WORDS, st.lists(st.sampled_from(["older", "newer"]), max_size=12))
def test_the_draft_is_at_the_end_whichever_way_one_goes(stored, draft, moves):
    prompts = Prompts()
    prompts.load(stored)
    shown, pages, at = draft, [*stored, draft], len(stored)
    for move in moves:
        found = prompts.older(shown) if move == "older" else prompts.newer(shown)
        there = at + (1 if move == "newer" else -1)
        if 0 <= there < len(pages):
            at, shown = there, found
            assert shown == pages[at]
        else:
            assert found is None


def test_changes_to_earlier_prompts_are_kept_while_browsing():
    prompts = Prompts()
    prompts.load(["one", "two"])
    assert prompts.older("draft") == "two"
    assert prompts.older("two, changed") == "one"
    assert prompts.newer("one") == "two, changed"
    prompts.leave()
    assert prompts.older("") == "two"


def test_what_the_daemon_has_is_not_there_twice():
    prompts = Prompts()
    prompts.add("mine")
    prompts.add("mine")
    prompts.add("/command")
    prompts.load(["before", "mine"])
    assert [prompts.older(""), prompts.older(""), prompts.older(""), prompts.older("")] == [
        "/command",
        "mine",
        "before",
        None,
    ]


async def test_ctrl_r_shows_where_and_when_and_takes_one_into_the_editor():
    async with typing(env={"TZ": "UTC"}) as t:
        t.fake_ui.answers[PromptHistory] = page("run foo", "foo again\nand more")
        await t.type("draft\x12")
        assert "search:" in t.lines()[1]
        assert t.lines()[2].startswith("run foo")
        assert "/home/me/p0  2026-11-22" in t.lines()[2]
        await t.type("foo\x12\r")
        assert t.fake_ui.asked[-1] == PromptHistory(query="foo", limit=50)
        assert (t.text, t.fake_ui.dialogs, t.texts) == ("foo again\nand more", [], [])


async def test_escape_leaves_the_draft_as_it_was():
    async with typing() as t:
        t.fake_ui.answers[PromptHistory] = page("run foo")
        await t.type("draft\x12f")
        await t.press("escape")
        assert (t.text, t.fake_ui.dialogs) == ("draft", [])


async def test_typing_filters_and_selects_the_newest_match():
    async with typing() as t:
        t.fake_ui.answers[PromptHistory] = found
        await t.type("\x12\x12")
        await t.type("x")
        await t.type("\r")
        assert t.text == "found x"


async def test_a_search_without_matches_says_so_and_takes_nothing():
    async with typing() as t:
        t.fake_ui.answers[PromptHistory] = page()
        await t.type("draft\x12zzz")
        assert "no matches" in t.lines()[0]
        await t.type("\r")
        assert t.text == "draft"


async def test_the_search_shows_an_error_of_the_daemon():
    async with typing() as t:
        t.fake_ui.answers[PromptHistory] = CallError("unknown_command", "it knows no prompt.history")
        await t.type("\x12")
        assert "knows no prompt.history" in t.lines()[0]


async def test_the_list_has_room_for_the_text_on_a_narrow_terminal():
    async with typing() as t:
        t.fake_ui.answers[PromptHistory] = page("run foo", "\x1b[2J\x07" + "\u5b57" * 100)
        await t.type("\x12")
        assert t.lines(40)[2] == "run foo"
        assert len(t.fake_ui.dialogs[-1].rows(40, 4)) == 4
        assert t.fake_ui.dialogs[-1].rows(40, 0) == []
