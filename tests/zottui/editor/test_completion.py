"""The list below what is typed: commands, their arguments, files."""

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.editor.keyboard import snapshot, typing
from zotd.client.errors import CallError
from zotd.wire.api import Complete, Completion, Completions
from zottui.choice import ListChoice
from zottui.editor.completion import CompletionToken, Kind, token_at
from zottui.state import ViewState
from zottui.ui_context import Dialog

UP, DOWN, TAB = "\x1b[A", "\x1b[B", "\t"

COMMANDS = [
    ListChoice("clear", "empty the model's context"),
    ListChoice("clearnotes", "remove notes", "notes"),
    ListChoice("compact", "summarise"),
    ListChoice("model", "switch the model"),
    ListChoice("rename", "give the session a name", needs_argument=True),
]


def in_source(asked):
    assert isinstance(asked, Complete)
    return Completions(["src/"] if asked.text == "s" else ["src/a.py"])


def attached():
    return ViewState(session=snapshot().session)


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("/", CompletionToken(Kind.COMMAND, 0, "")),
        ("/cle", CompletionToken(Kind.COMMAND, 0, "cle")),
        ("/usr/bin", None),
        ("see /cle", None),
        ("/model op", CompletionToken(Kind.ARGUMENT, 7, "op", "model")),
        ("/clear op", None),
        ("/model op\nx", None),
        ("@", CompletionToken(Kind.FILE, 0, "")),
        ("see @src/m", CompletionToken(Kind.FILE, 4, "src/m")),
        ('see @"my fi', CompletionToken(Kind.FILE, 4, "my fi")),
        ("me@home", None),
        ("see @src ", None),
        ("one\n@two", CompletionToken(Kind.FILE, 4, "two")),
        ("/review @se", CompletionToken(Kind.FILE, 8, "se")),
    ],
)
def test_token_at_recognizes_commands_arguments_and_files(text, token):
    assert token_at(text, len(text), {"model"}) == token


@given(st.text(st.sampled_from('/@" \nab'), max_size=12), st.integers(0, 12))
def test_a_token_ends_at_the_cursor(text, cursor):
    cursor = min(cursor, len(text))
    token = token_at(text, cursor, {"a"})
    assert token is None or text[token.start : cursor].endswith(token.query)


async def test_a_slash_lists_the_commands_with_their_sources():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type("/c")
        assert t.lines() == [
            "/clear       empty the model's context",
            "/clearnotes  remove notes  [notes]",
            "/compact     summarise",
        ]
        await t.type("x")
        assert t.fake_ui.dialogs == []


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ("/cle\r", "/clear"),
        ("/clear\r", "/clear"),
        ("/clearn\r", "/clearnotes"),
        (f"/c{DOWN}{DOWN}\r", "/compact"),
        (f"/c{UP}\r", "/compact"),
        ("/nope\r", "/nope"),
        ("/clear now\r", "/clear now"),
    ],
)
async def test_enter_runs_the_highlighted_choice(keys, sent):
    async with typing() as t:
        t.commands = COMMANDS
        await t.type(keys)
        assert (t.texts, t.text, t.fake_ui.dialogs) == ([sent], "", [])


async def test_an_exact_name_runs_although_it_was_found_in_the_middle_of_the_list():
    async with typing() as t:
        t.commands = [ListChoice("cancel-ear"), ListChoice("clear")]
        await t.type("/clear\r")
        assert t.texts == ["/clear"]


async def test_the_next_prompt_has_a_list_of_its_own():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type("/clear\r/c")
        assert t.lines()[0].startswith("/clear ")


async def test_a_slash_alone_runs_nothing():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type("/\r")
        assert (t.texts, t.text) == ([], "/")
        await t.type(f"{DOWN}\r")
        assert t.texts == ["/clear"]


async def test_a_command_that_needs_an_argument_waits_for_it():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type("/ren\r")
        assert (t.texts, t.text) == ([], "/rename ")
        await t.type("it\r")
        assert t.texts == ["/rename it"]


async def test_tab_completes_and_appends_a_space():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type(f"/mo{TAB}")
        assert (t.text, t.texts, t.fake_ui.dialogs) == ("/model ", [], [])


async def test_escape_closes_the_list_until_something_else_is_begun():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type("/c")
        await t.press("escape")
        assert t.fake_ui.dialogs == []
        await t.type("l")
        assert t.fake_ui.dialogs == []
        await t.type("\x15/m")
        assert t.lines()[0] == "/model    switch the model"


async def test_commands_that_come_while_their_name_is_typed_are_listed():
    async with typing() as t:
        await t.type("/c")
        assert t.fake_ui.dialogs == []
        t.commands = COMMANDS
        t.editor.popup.commands_changed()
        assert t.lines()[0] == "/clear       empty the model's context"
        await t.press("escape")
        t.editor.popup.commands_changed()
        assert t.fake_ui.dialogs == []


async def test_commands_that_come_do_not_cover_a_question():
    async with typing() as t:
        await t.type("/c")
        question = cast("Dialog", object())
        t.fake_ui.dialogs.append(question)
        t.commands = COMMANDS
        t.editor.popup.commands_changed()
        assert t.fake_ui.dialogs == [question]


async def test_a_choice_stays_highlighted_while_it_is_there():
    async with typing() as t:
        t.commands = COMMANDS
        await t.type(f"/c{DOWN}lear\r")
        assert t.texts == ["/clearnotes"]


async def test_a_long_list_scrolls():
    async with typing() as t:
        t.commands = [ListChoice(f"c{n:02}") for n in range(30)]
        await t.type("/c" + DOWN * 20)
        assert len(t.lines()) == 8
        assert "/c20" in t.lines()
        assert len(t.fake_ui.dialogs[-1].rows(80, 3)) == 3


async def test_the_list_fits_into_a_narrow_terminal():
    async with typing() as t:
        t.commands = [ListChoice("x" * 50, "y" * 50, "z" * 50), ListChoice("\u5b57" * 20, "bad \x1b[2J\x07 words")]
        await t.type("/")
        assert len(t.lines(20)) == 2


async def test_files_come_from_the_daemon_and_stay_in_its_order():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = Completions(["src/settings.py", "a/set.txt"])
        await t.type("see @set")
        assert t.lines() == ["src/settings.py", "a/set.txt"]
        assert t.fake_ui.asked[-1] == Complete(session="s_1", kind="file", text="set")
        await t.type("\r")
        assert (t.text, t.texts, t.fake_ui.dialogs) == ("see @src/settings.py ", [], [])


async def test_what_extensions_offer_to_mention_is_among_the_files_with_what_it_is():
    async with typing(state=attached()) as t:
        mention = Completion("docs:file:///a.md", "The first", "mcp-docs")
        t.fake_ui.answers[Complete] = Completions([mention.text, "docs/"], [mention, Completion("docs/")])
        await t.type("see @docs")
        first, second = t.lines(80)
        assert first.split() == ["docs:file:///a.md", "The", "first", "[mcp-docs]"]
        assert second.split() == ["docs/"]
        await t.type("\r")
        assert t.text == "see @docs:file:///a.md "


async def test_enter_sends_a_prompt_whose_file_is_typed_in_full_whether_or_not_the_list_has_come():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = Completions(["set.txt", "a/set.txt"])
        await t.type("see @set.txt")
        assert t.lines() == ["set.txt", "a/set.txt"]
        await t.type("\r")
        assert (t.texts, t.fake_ui.dialogs) == (["see @set.txt"], [])
        await t.type("see @set.txt")
        await t.type("\x1b[B\r")
        assert t.text == "see @a/set.txt "


async def test_a_path_with_spaces_is_quoted():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = Completions(["my notes.md"])
        await t.type("@my")
        await t.type(f"{TAB}and")
        assert t.text == '@"my notes.md" and'
        await t.type('\x15@"my n')
        await t.type(TAB)
        assert t.text == '@"my notes.md" '


async def test_tab_goes_into_a_directory_and_enter_takes_it():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = in_source
        await t.type("@s")
        await t.type(TAB)
        assert (t.text, t.lines()) == ("@src/", ["src/a.py"])
        await t.type("\x15@s")
        await t.type("\r")
        assert t.text == "@src/ "


async def test_in_the_middle_of_a_text_no_second_space_is_made():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = Completions(["a.py"])
        await t.type("see  there" + "\x1b[D" * 6 + "@a")
        await t.type("\rx")
        assert t.text == "see @a.py xthere"


async def test_one_question_is_under_way_and_the_newest_is_next():
    answers = asyncio.Event()
    asked = []

    async def slow(query):
        asked.append(query)
        await answers.wait()
        return [ListChoice(query)]

    async with typing(arguments={"model": slow}) as t:
        for letter in ("/model ", "a", "b", "c"):
            await t.type(letter)
        assert asked == [""]
        answers.set()
        await t.settled()
        assert asked == ["", "abc"]
        assert t.lines() == ["abc"]


async def test_an_argument_is_chosen_and_runs():
    async def models(_query):
        return [ListChoice("anthropic/opus"), ListChoice("openai/large"), ListChoice("openai/small")]

    async with typing(arguments={"model": models}) as t:
        t.commands = COMMANDS
        await t.type("/mod\t")
        assert t.lines() == ["anthropic/opus", "openai/large", "openai/small"]
        await t.type("sma\r")
        assert t.texts == ["/model openai/small"]
        await t.type("/model \r")
        assert t.texts[1:] == ["/model "]
        await t.type("/model other\r")
        assert t.texts[2:] == ["/model other"]


async def test_an_answer_that_comes_too_late_is_dropped():
    answers = asyncio.Event()

    async def slow(query):
        await answers.wait()
        return [ListChoice("x")]

    async with typing(arguments={"model": slow}) as t:
        await t.type("/model x")
        await t.type("\x15hello")
        answers.set()
        await t.settled()
        assert t.fake_ui.dialogs == []


async def test_a_daemon_that_cannot_complete_is_not_complained_about_at_every_key():
    async with typing(state=attached()) as t:
        t.fake_ui.answers[Complete] = CallError("unsupported", "no")
        await t.type("see @set")
        assert (t.fake_ui.dialogs, t.fake_ui.said) == ([], [])


async def test_before_there_is_a_session_there_are_no_files():
    async with typing() as t:
        await t.type("see @set")
        assert (t.fake_ui.dialogs, t.fake_ui.asked) == ([], [])


async def test_a_prompt_from_history_does_not_open_the_popup():
    async with typing() as t:
        t.commands = COMMANDS
        t.editor.prompts.load(["/model"])
        await t.type(UP)
        assert (t.text, t.fake_ui.dialogs) == ("/model", [])
