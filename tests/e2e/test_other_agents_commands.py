"""Slash commands of another agent, in a real daemon: offered by completion, and sent to it as prompts."""

import pytest

pytestmark = pytest.mark.usefixtures("odd_is_known")


async def offered(talk, typed=""):
    """What completion says of the agent's commands, by their names."""
    found = (await talk.ask("complete", kind="command", text=typed)).get("found", [])
    return {one["text"]: one for one in found if one["source"] == "odd"}


async def test_its_commands_are_completed_as_it_has_listed_them_last(odd):
    talk = await odd()
    assert await offered(talk) == {}
    await talk.run("commands:review,test")
    assert (await offered(talk, "rev"))["review"] == {
        "text": "review",
        "detail": "does review",
        "source": "odd",
        "hint": "[PATH]",
    }
    await talk.run("commands:other")
    assert list(await offered(talk)) == ["other"]
    await talk.run("commands:none")
    assert await offered(talk) == {}


async def test_those_that_it_lists_while_its_session_opens_are_completed(odd):
    talk = await odd(behaves="early")
    await talk.run("hello")
    assert list(await offered(talk)) == ["review"]


async def test_those_that_it_lists_while_it_loads_its_session_are_completed(odd):
    talk = await odd(stores=True)
    await talk.run("die")
    await talk.run("hello")
    assert list(await offered(talk)) == ["loaded"]


async def test_a_command_of_its_own_is_sent_as_a_prompt(odd):
    talk = await odd()
    await talk.run("commands:review")
    await talk.ask("run_command", name="review", args="src now")
    await talk.until("done")
    assert (await talk.texts())[-2:] == [("user", ["/review src now"]), ("assistant", ["/review src now "])]


async def test_a_command_is_sent_before_it_has_listed_any_and_an_unknown_one_is_refused_afterwards(odd):
    talk = await odd()
    await talk.ask("run_command", name="review")
    await talk.until("done")
    assert (await talk.texts())[0] == ("user", ["/review"])
    await talk.run("commands:test")
    answer = await talk.client.answer("run_command", session=talk.id, name="review")
    assert answer["error"].startswith("there is no /review; there are ")
    assert "/test" in answer["error"]


async def test_a_name_of_zot_stays_its_own(odd):
    talk = await odd()
    await talk.run("commands:stop,diff,mine")
    assert list(await offered(talk)) == ["mine"]
    assert await talk.refused("run_command", name="diff") == "not_found"


async def test_it_counts_before_a_file_of_the_same_name(odd, house):
    folder = house.place.home / "commands"
    folder.mkdir()
    (folder / "review.md").write_text("of a file")
    talk = await odd()
    await talk.run("commands:review")
    assert list(await offered(talk)) == ["review"]
    await talk.ask("run_command", name="review")
    await talk.until("done")
    assert (await talk.texts())[-2] == ("user", ["/review"])


async def test_what_nobody_can_type_or_read_is_left_out(odd):
    talk = await odd()
    await talk.run("commands:wild on")
    assert (await talk.texts())[-1] == ("assistant", ["on "])
    (long,) = (await offered(talk, "long")).values()
    assert len(long["detail"]) == 200
    assert long["detail"].isprintable()
    assert list(await offered(talk, "many-498")) == ["many-498"]
    assert await offered(talk, "many-499") == {}
    assert not {"two words", "red", "/slash"} & {*await offered(talk)}


async def test_commands_of_a_session_of_somebody_else_are_not_offered(odd):
    talk = await odd()
    await talk.run("commands:mine stranger odd")
    assert list(await offered(talk)) == ["mine"]


async def test_commands_of_our_own_runs_are_those_of_the_agent_if_it_has_them(odd):
    talk = await odd()
    await talk.run("commands:compact,mine")
    assert [*await offered(talk)] == ["compact", "mine"]
    found = (await talk.ask("complete", kind="command", text=""))["found"]
    assert "plan" not in {one["text"] for one in found}
    await talk.ask("run_command", name="compact", args="keep all")
    await talk.until("done")
    assert (await talk.texts())[-2] == ("user", ["/compact keep all"])
    answer = await talk.client.answer("run_command", session=talk.id, name="plan", args="it")
    assert answer["error"] == "odd runs the turns of this session, so zot has no planning here; ask it yourself"


async def test_a_skill_is_not_begun_for_it(odd):
    talk = await odd()
    assert (await talk.ask("complete", kind="command", text="skill:"))["items"] == []
    answer = await talk.client.answer("run_command", session=talk.id, name="skill:zot")
    assert answer["error"].startswith("odd runs the turns of this session, so zot has no calls that begin a prompt")
