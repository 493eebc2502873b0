"""Options of another agent, chosen from lists, without a terminal and without a daemon."""

import pytest

from tests.zottui.fake_ui import FakeUi
from zotd.wire import api
from zottui.commands.command import UsageError
from zottui.commands.settings import agent_options
from zottui.state import ViewState

MODE = api.AgentOption(
    "mode", "Mode", "ask", [api.AgentOptionValue("ask", "Ask"), api.AgentOptionValue("plan", "Plan", "only reads")]
)
MODEL = api.AgentOption("model", "Model", "small", [api.AgentOptionValue("small", "Small")])


@pytest.fixture
async def ui():
    session = api.SessionInfo(
        id="s_1", name="", cwd="/", provider="acp", model="odd", reasoning="off", mode="ask", state="idle",
        created="", updated="", ephemeral=False,
    )  # fmt: skip
    async with FakeUi(ViewState(session=session)) as made:
        made.answers[api.OfSession] = api.AgentOptionList("Odd", [MODE, MODEL])
        made.answers[api.AgentChoose] = api.AgentOptionList("Odd", [MODE, MODEL])
        yield made


async def test_the_option_and_then_its_value_are_chosen_from_lists(ui):
    ui.spawn(agent_options(ui, ""))
    await ui.turn()
    assert [line.split() for line in ui.screen().splitlines()[1:3]] == [[">", "Mode", "Ask"], ["Model", "Small"]]
    await ui.press("enter")
    assert "only reads" in ui.screen()
    await ui.press("down", "enter")
    assert ui.asked[-1] == api.AgentChoose(session="s_1", option="mode", value="plan")


async def test_an_agent_with_one_option_is_asked_for_its_value_at_once(ui):
    ui.answers[api.OfSession] = api.AgentOptionList("Odd", [MODE])
    ui.spawn(agent_options(ui, ""))
    await ui.turn()
    assert ui.screen().splitlines()[0].startswith("Mode")
    await ui.press("escape")
    assert [type(one) for one in ui.asked] == [api.OfSession]


async def test_what_is_typed_is_sent_without_a_list(ui):
    await agent_options(ui, "mode plan")
    assert ui.asked == [api.AgentChoose(session="s_1", option="mode", value="plan")]


async def test_an_unknown_option_is_refused_with_those_there_are(ui):
    with pytest.raises(UsageError, match="unknown option speed; choose one of: mode, model"):
        await agent_options(ui, "speed")


async def test_an_agent_without_options_is_told(ui):
    ui.answers[api.OfSession] = api.AgentOptionList("Odd", [])
    with pytest.raises(UsageError, match="Odd has no options"):
        await agent_options(ui, "")
