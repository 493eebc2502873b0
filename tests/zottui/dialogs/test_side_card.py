"""The card of `/btw`."""

import pytest

from tests.zottui.widgets.states import EVIL
from zotd.client.errors import CallError
from zotd.wire import api
from zotd.wire.content import Tokens
from zotd.wire.events import SideDelta
from zottui.commands.command import UsageError
from zottui.commands.conversation import by_the_way
from zottui.dialogs.side_card import SideCard
from zottui.dialogs.watching import tell_beside

ANSWER = api.SideAnswer("It is a needle.", "openai", "gpt-x", Tokens(cost_usd=0.02))


@pytest.fixture
def asked(fake_ui):
    fake_ui.answers[api.SideQuestion] = ANSWER
    return fake_ui


async def test_the_card_shows_the_question_and_the_answer_with_its_price_and_escape_closes_it(asked):
    await by_the_way(asked, "what is it?")
    await asked.turn()
    assert asked.screen(80) == "by the way: what is it?  gpt-x, $0.02\nIt is a needle.\nesc close  pgup pgdn scroll"
    assert [one.question for one in asked.asked] == ["what is it?"]
    assert not await asked.press("x")
    assert await asked.press("escape")
    assert asked.dialogs == []


async def test_pieces_are_shown_as_they_come_but_not_those_of_another_question(asked):
    card = SideCard(asked, "s_1", "what?")
    asked.open(card)
    key = card._key
    tell_beside(asked.dialogs, [SideDelta(key, "It "), SideDelta("q_other", "no"), SideDelta(key, "is")])
    assert asked.screen(40).splitlines()[1] == "It is"


async def test_a_failure_is_told_on_the_card(asked):
    asked.answers[api.SideQuestion] = CallError("busy", "another question is being answered")
    await by_the_way(asked, "what?")
    await asked.turn()
    assert "no answer" in asked.screen()
    assert "another question is being answered" in asked.screen()


async def test_a_long_answer_is_scrolled(asked):
    asked.answers[api.SideQuestion] = replace_text("\n".join(map(str, range(50))))
    await by_the_way(asked, "what?")
    await asked.turn()
    assert "49" in asked.screen(40, 30)
    await asked.press("pageup")
    assert "49" not in asked.screen(40, 30)
    for _ in range(20):
        await asked.press("pageup")
    assert asked.screen(40, 30).splitlines()[1] == "0"
    for _ in range(20):
        await asked.press("pagedown")
    assert "49" in asked.screen(40, 30)


@pytest.mark.parametrize(("width", "height"), [(5, 3), (20, 1), (80, 40)])
async def test_what_a_model_says_stays_within_the_card(asked, width, height):
    asked.answers[api.SideQuestion] = replace_text(EVIL)
    await by_the_way(asked, EVIL)
    await asked.turn()
    asked.screen(width, height)


async def test_a_question_is_needed(asked):
    with pytest.raises(UsageError):
        await by_the_way(asked, "")


def replace_text(text):
    return api.SideAnswer(text, "openai", "gpt-x", Tokens())
