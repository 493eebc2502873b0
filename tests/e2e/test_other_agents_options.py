"""What can be chosen of another agent, in a real daemon: its mode, its model and other options."""

import pytest

from tests.e2e.odd import ended, saw

pytestmark = pytest.mark.usefixtures("odd_is_known")


async def choose(talk, option, value):
    """The options after that, with their values."""
    found = (await talk.ask("session.agent_choose", option=option, value=value))["options"]
    return {one["id"]: one["current"] for one in found}


async def refusal(talk, option, value):
    return (await talk.client.answer("session.agent_choose", session=talk.id, option=option, value=value))["error"]


async def says(talk, message="chosen"):
    """The mode and the model that the agent has."""
    await talk.run(message)
    return (await talk.texts())[-1][1][-1]


async def test_its_modes_are_listed_before_the_first_prompt(odd):
    talk = await odd(behaves="modes")
    found = await talk.ask("session.agent_options")
    assert found["agent"] == "Odd"
    (mode,) = found["options"]
    assert (mode["id"], mode["name"], mode["current"], mode["category"]) == ("mode", "Mode", "ask", "mode")
    assert mode["values"][1] == {"id": "code", "name": "Write code", "detail": "to Write code"}


async def test_its_mode_is_set_and_the_mode_of_zot_stays(odd):
    talk = await odd(behaves="modes", mode="ask")
    assert await choose(talk, "mode", "plan") == {"mode": "plan"}
    assert await says(talk) == "plan small"
    (found,) = (await talk.client.ask("session.list"))["sessions"]
    assert found["mode"] == "ask"


async def test_its_options_count_before_its_modes(odd):
    talk = await odd(behaves="options")
    assert await choose(talk, "how", "write CODE") == {"how": "code", "model": "small"}
    assert await choose(talk, "model", "large") == {"how": "code", "model": "large"}
    assert await says(talk) == "code large"


async def test_every_client_is_told_of_a_change(odd, house):
    talk = await odd(behaves="modes")
    other = await house.follow(talk.id)
    await choose(talk, "mode", "code")
    assert (await other.until("notice"))[-1]["text"] == "Mode: Write code"


async def test_the_next_process_has_what_was_chosen(odd):
    talk = await odd(behaves="options", stores=True)
    await choose(talk, "how", "code")
    await choose(talk, "model", "large")
    await talk.run("die")
    assert await says(talk) == "code large"


async def test_the_mode_in_which_the_next_process_begins_is_no_choice_of_the_agent(odd):
    talk = await odd(behaves="modes", stores=True)
    await choose(talk, "mode", "plan")
    await talk.run("die")
    for _ in range(2):
        assert await says(talk) == "plan small"
        await talk.run("die")


async def test_a_mode_that_the_agent_has_left_is_not_set_again(odd):
    talk = await odd(behaves="modes", stores=True)
    await choose(talk, "mode", "plan")
    events = await talk.run("switch:code on")
    assert saw(events, "notice")[-1]["text"] == "Mode: Write code"
    await talk.run("die")
    assert await says(talk) == "code small"


async def test_what_people_have_not_chosen_is_left_to_the_agent(odd):
    talk = await odd(behaves="modes", stores=True)
    await talk.run("switch:code on")
    await talk.run("die")
    assert await says(talk) == "ask small"


async def test_a_fork_has_what_was_chosen(odd, house):
    talk = await odd(behaves="modes")
    await choose(talk, "mode", "plan")
    await talk.run("hello")
    await talk.ask("clear")
    session = (await talk.ask("session.fork"))["session"]
    assert await says(await house.follow(session["id"], talk.client)) == "plan small"


async def test_what_is_not_there_is_refused_with_what_is(odd):
    talk = await odd(behaves="modes")
    assert await refusal(talk, "mode", "yolo") == 'Odd has no Mode "yolo"; there are ask, code, plan'
    assert await refusal(talk, "model", "large") == 'Odd has no option "model"; there are mode'
    other = await odd()
    assert await refusal(other, "mode", "plan") == 'Odd has no option "mode"; it has none'


async def test_what_the_agent_refuses_is_not_kept(odd):
    talk = await odd(behaves="options")
    assert await refusal(talk, "how", "plan") == "Odd refused: plan is for members"
    assert await says(talk) == "ask small"


async def test_what_nobody_can_type_or_read_is_left_out(odd):
    talk = await odd(behaves="absurd-options")
    (fine,) = (await talk.ask("session.agent_options"))["options"]
    assert (fine["id"], fine["values"][0]["id"], len(fine["values"])) == ("fine", "good", 1)
    assert fine["values"][0]["name"].isprintable()
    assert ended(await talk.run("hello")) is None


async def test_a_session_of_zot_has_none(house):
    talk = await house.create("openai", None)
    answer = await talk.client.answer("session.agent_options", session=talk.id)
    assert answer["error"] == "no other agent runs the turns of this session, so it has no options of one"


@pytest.mark.parametrize(
    ("command", "fields"),
    [("session.agent_options", {}), ("session.agent_choose", {"option": "mode", "value": "code"})],
)
async def test_setting_them_needs_the_role_to_approve(odd, house, command, fields):
    talk = await odd(behaves="modes")
    client = await house.connect(role="submit")
    assert await client.refused(command, session=talk.id, **fields) == "forbidden"


async def test_an_agent_that_cannot_begin_is_told_in_a_sentence(odd):
    talk = await odd(behaves="login")
    answer = await talk.client.answer("session.agent_options", session=talk.id)
    assert answer["error"] == "Odd wants you to log in; then send the prompt again"
