"""Asking for a choice, a line, a yes."""

import asyncio

import pytest

from tests.zottui.widgets.states import EVIL
from zotd.wire.api import ModelInfo
from zottui.dialogs import choose, confirm
from zottui.dialogs import input as line
from zottui.dialogs.keys import PASTED
from zottui.dialogs.line import Line
from zottui.dialogs.listing import Entry, Listing
from zottui.widgets.cells import POINTER

FRUIT = [
    Entry("a", "apple", ("red", "12 g")),
    Entry("b", "banana", ("yellow", "120 g")),
    Entry("c", "a long cherry 日本", ("red", "5 g"), mark="new"),
]


async def asked(fake_ui, question, *keys):
    """The answer after these keys; `...` when there is none yet."""
    answers = [...]

    async def asking():
        answers.append(await question)

    fake_ui.spawn(asking())
    await fake_ui.turn()
    await fake_ui.press(*keys)
    return answers[-1]


# --- choosing -----------------------------------------------------------------------------------------------------------


CHOICES = {
    20: """\
fruit
       apple
       banana
> new  a long cherr…
enter choose
esc cancel
type to filter""",
    40: """\
fruit
       apple               red     12 g
       banana              yellow  120 g
> new  a long cherry 日本  red     5 g
enter choose  esc cancel  type to filter""",
}
CHOICES |= dict.fromkeys((80, 140), CHOICES[40])


@pytest.mark.parametrize("width", CHOICES)
async def test_a_list_has_columns_as_far_as_there_is_room(fake_ui, width):
    await asked(fake_ui, choose.ask(fake_ui, "fruit", FRUIT, selected="c"))
    assert fake_ui.screen(width) == CHOICES[width]


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["enter"], "a"),
        (["down", "enter"], "b"),
        (["c-m"], "a"),
        (["down", "down", "down", "up", "enter"], "b"),
        (["pagedown", "enter"], "c"),
        (["up", "enter"], "a"),
        ([*"an", "enter"], "b"),
        ([*"red new", "enter"], "c"),
        ([*"ban", "backspace", "backspace", "backspace", "enter"], "b"),
        (["escape"], None),
    ],
)
async def test_an_entry_is_chosen_with_arrows_or_by_typing(fake_ui, keys, chosen):
    assert await asked(fake_ui, choose.ask(fake_ui, "fruit", FRUIT), *keys) == chosen
    assert fake_ui.dialogs == []


async def test_nothing_is_chosen_while_the_filter_fits_nothing(fake_ui):
    assert await asked(fake_ui, choose.ask(fake_ui, "fruit", FRUIT), *"xyz", "enter") is ...
    assert fake_ui.screen().startswith("fruit: xyz")


async def test_ctrl_c_is_left_to_the_application(fake_ui):
    for question in (choose.ask(fake_ui, "fruit", FRUIT), line.ask(fake_ui, "name"), confirm.ask(fake_ui, "sure?")):
        assert await asked(fake_ui, question) is ...
        assert not await fake_ui.press("c-c")


async def test_a_question_whose_asker_is_cancelled_closes(fake_ui):
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(choose.ask(fake_ui, "fruit", FRUIT))
        await fake_ui.turn()
        assert fake_ui.dialogs
        task.cancel()
    assert fake_ui.dialogs == []


async def test_models_that_could_answer_come_first(fake_ui):
    known = [
        ModelInfo("big", "far", 1_000_000, 0, reasoning=True, ready=False),
        ModelInfo("small", "near", 32_000, 0, reasoning=False),
    ]
    chosen = await asked(fake_ui, choose.ask(fake_ui, "model", choose.models(known)))
    assert fake_ui.screen(60).splitlines()[1:3] == [
        "> near/small          32k tokens",
        "  far/big     no key  1M tokens   thinks",
    ]
    assert chosen is ...


def test_the_model_in_use_comes_first_and_those_without_a_key_last():
    known = [
        ModelInfo("c", "far", 0, 0, reasoning=False),
        ModelInfo("d", "none", 0, 0, reasoning=False, ready=False),
        *(ModelInfo(name, "near", 0, 0, reasoning=False) for name in ("a", "b")),
    ]
    assert [entry.key for entry in choose.models(known, "near/b")] == ["near/b", "far/c", "near/a", "none/d"]


def test_the_selection_stays_with_its_entry_when_the_list_changes():
    listing = Listing(FRUIT, selected="b")
    listing.replace(FRUIT[::-1])
    assert listing.selected == FRUIT[1]
    listing.replace([FRUIT[2], FRUIT[0]])
    assert listing.selected == FRUIT[0]
    listing.replace([])
    assert listing.selected is None


def test_a_long_list_shows_the_entries_around_the_selection():
    listing = Listing([Entry(str(n), f"entry {n}") for n in range(100)], selected="50")
    texts = ["".join(text for _, text in row) for row in listing.rows(20, 3)]
    assert texts == ["  entry 49", f"{POINTER} entry 50", "  entry 51"]


@pytest.mark.parametrize("width", [1, 5, 20, 80])
@pytest.mark.parametrize("height", [0, 1, 2, 12])
async def test_lists_of_anything_fit_into_any_room(fake_ui, width, height):
    entries = [Entry("x", EVIL, (EVIL, EVIL), mark=EVIL, depth=3), Entry("y", "日本" * 50, ("日本" * 50,))]
    await asked(fake_ui, choose.ask(fake_ui, EVIL, entries))
    fake_ui.screen(width, height)


# --- a line -------------------------------------------------------------------------------------------------------------


async def test_a_line_is_typed(fake_ui):
    assert await asked(fake_ui, line.ask(fake_ui, "name", text="old"), "c-u", *" new one ", "enter") == "new one"


@pytest.mark.parametrize("keys", [["escape"], ["enter"], [" ", "enter"]])
async def test_an_empty_line_is_no_answer(fake_ui, keys):
    assert await asked(fake_ui, line.ask(fake_ui, "name"), *keys) is None


async def test_a_secret_is_shown_as_dots(fake_ui):
    await asked(fake_ui, line.ask(fake_ui, "key", is_secret=True), *"s3cret")
    assert fake_ui.screen(40) == "key\n> ••••••\nenter done  esc cancel"
    await fake_ui.press("enter")


@pytest.mark.parametrize("width", [1, 4, 12])
async def test_of_a_long_line_the_part_around_the_cursor_is_shown(fake_ui, width):
    await asked(fake_ui, line.ask(fake_ui, "name"), *"日本語のテキスト", "left", "home", "end", "left")
    fake_ui.screen(width, 3)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["home", "x"], "xone two"),
        (["left", "delete"], "one tw"),
        (["left", "left", "backspace"], "one wo"),
        (["c-w"], "one "),
        (["c-w", "c-w"], ""),
        (["home", "right", "c-k"], "o"),
        (["left", "c-u"], "o"),
        (["c-a", "c-f", "c-b", "c-e", "!"], "one two!"),
    ],
)
def test_a_line_is_edited(keys, text):
    edited = Line("one two")
    for key in keys:
        assert edited.key("<any>", key) if len(key) == 1 else edited.key(key, "")
    assert edited.text == text


def test_a_paste_becomes_one_sanitized_line():
    edited = Line()
    edited.key(PASTED, f"one\ntwo{EVIL}")
    assert edited.text.startswith("one two")
    assert edited.text.isprintable() or "<U+202E>" in edited.text


def test_other_keys_are_left_alone():
    assert not any(Line().key(key, "") for key in ("f1", "c-c", "tab", "up"))


# --- yes or no ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "said"), [("y", True), ("Y", True), ("n", False), ("enter", False), ("escape", False), ("x", ...)]
)
async def test_only_y_means_yes(fake_ui, key, said):
    assert await asked(fake_ui, confirm.ask(fake_ui, "delete it?"), key) is said


async def test_a_long_question_is_folded(fake_ui):
    await asked(fake_ui, confirm.ask(fake_ui, "delete it?\nreally"))
    assert fake_ui.screen(6, 12) == "delete\n it?\nreally\ny yes\nn no"
