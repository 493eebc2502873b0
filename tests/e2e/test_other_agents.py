"""Sessions whose turns another agent runs, in a real daemon: `zotd.testing.odd_agent` is the agent."""

import pytest

from tests.e2e.odd import asked_by, decide, saw
from tests.needs import needs

pytestmark = pytest.mark.usefixtures("odd_is_known")


async def test_a_prompt_is_answered_by_the_agent(odd):
    talk = await odd()
    events = await talk.run("hello there")
    assert events[-1]["type"] == "done"
    assert await talk.texts() == [("user", ["hello there"]), ("assistant", ["hello there "])]


# --- what is shown and recorded ---------------------------------------------------------------------------------------


async def test_its_calls_are_on_record_with_their_results(odd, house):
    talk = await odd()
    events = await talk.run(f"first write:{house.cwd}/a.txt then")
    call, result = saw(events, "tool_call")[0], saw(events, "tool_result")[0]
    assert (call["name"], call["args"]["title"]) == ("edit", f"{house.cwd}/a.txt")
    assert "+odd" in result["content"][0]["text"]
    assert [role for role, _ in await talk.texts()] == ["user", "assistant", "tool", "assistant"]


async def test_its_reasoning_is_shown(odd):
    talk = await odd()
    assert saw(await talk.run("think:hm so"), "thinking_delta")[0]["delta"] == "hm"


async def test_its_changes_of_files_can_be_undone(odd, house):
    needs("git")
    (house.cwd / "kept.txt").write_text("as it was")
    talk = await odd()
    await talk.run(f"write:{house.cwd}/kept.txt write:{house.cwd}/new.txt")
    undone = await talk.ask("session.undo")
    assert undone["restored"] == ["kept.txt", "new.txt"]
    assert [(path.name, path.read_text()) for path in house.cwd.iterdir()] == [("kept.txt", "as it was")]


async def test_its_plan_is_that_of_the_session(odd):
    talk = await odd()
    events = await talk.run("plan:in_progress on plan:completed end")
    states = [event["plan"]["steps"][0] for event in saw(events, "plan")]
    assert states == [{"text": "look around", "state": "active"}, {"text": "look around", "state": "done"}]
    assert (
        "odd runs the turns"
        in (await talk.client.answer("session.plan_edit", session=talk.id, steps=[], revision=2))["error"]
    )


async def test_an_image_is_left_out_and_people_are_told(odd):
    talk = await odd()
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    events = await talk.run("see", images=[{"mime_type": "image/png", "data": pixel}])
    assert saw(events, "notice")[0]["text"] == "Odd takes no images; they were left out"
    assert (await talk.texts())[-1] == ("assistant", ["see "])


async def test_its_cost_is_what_budgets_count(odd):
    talk = await odd(budget_usd=0.5)
    await talk.run("cost:0.4 ok")
    usage = (await talk.ask("get_state"))["usage"]
    assert (usage["cost_usd"], usage["input"], usage["output"]) == (0.4, 10, 5)
    await talk.run("cost:0.7 ok")
    assert await talk.refused("prompt", message="more") == "budget_exceeded"


async def test_two_clients_see_the_same(odd, house):
    talk = await odd()
    other = await house.follow(talk.id)
    await talk.run("hello")
    assert saw(await other.until("done"), "text_delta")[0]["delta"] == "hello "


async def test_a_second_prompt_waits_also_when_it_is_to_steer(odd, house):
    talk = await odd()
    await talk.ask("prompt", message=f"wait:{house.cwd}/go one")
    started = await talk.ask("prompt", message="two", when_busy="steer")
    assert not started["started"]
    (house.cwd / "go").touch()
    await talk.until("done")
    await talk.until("done")
    assert await talk.texts() == [
        ("user", [f"wait:{house.cwd}/go one"]),
        ("assistant", ["one "]),
        ("user", ["two"]),
        ("assistant", ["two "]),
    ]


# --- permissions ------------------------------------------------------------------------------------------------------


async def test_a_second_client_decides_about_its_call(odd, house):
    talk = await odd(mode="ask")
    asked = await asked_by(talk, f"ask:{house.cwd}/made end")
    assert asked["preview"].startswith(f"run {house.cwd}/made")
    other = await house.follow(talk.id, await house.connect(client={"name": "ben"}, can_approve=True))
    assert [one["approval"] for one in other.snapshot["approvals"]] == [asked["approval"]]
    await decide(other, asked)
    events = await talk.until("done")
    assert saw(events, "approval_resolved")[0]["by"] == "ben"
    assert saw(events, "tool_result")[0]["content"][0]["text"] == "done"
    assert (house.cwd / "made").exists()


async def test_a_denied_call_is_not_made(odd, house):
    talk = await odd(mode="ask")
    await decide(talk, await asked_by(talk, f"ask:{house.cwd}/made end"), "deny")
    result = saw(await talk.until("done"), "tool_result")[0]
    assert (result["is_error"], result["content"][0]["text"]) == (True, "not allowed")
    assert not (house.cwd / "made").exists()


async def test_the_mode_decides_what_people_are_not_asked_about(odd, house):
    open_one, closed_one = await odd(mode="yolo"), await odd(mode="read-only")
    await open_one.run(f"ask:{house.cwd}/open")
    await closed_one.run(f"ask:{house.cwd}/closed")
    assert (house.cwd / "open").exists()
    assert not (house.cwd / "closed").exists()


async def test_a_rule_about_commands_holds_for_its_commands(odd, house):
    config = house.place.home / "config.toml"
    config.write_text(f'{config.read_text()}[[rules]]\ntool = "bash"\nmatch = "*/rm*"\naction = "deny"\n')
    await (await house.connect(role="admin")).ask("daemon.reload")
    talk = await odd(mode="yolo")
    await talk.run(f"ask:{house.cwd}/rm-all ask:{house.cwd}/ls")
    assert sorted(path.name for path in house.cwd.iterdir()) == ["ls"]


async def test_a_call_that_is_allowed_for_the_session_is_not_asked_about_again(odd, house):
    talk = await odd(mode="ask")
    await decide(talk, await asked_by(talk, f"ask:{house.cwd}/made"), scope="session")
    await talk.until("done")
    events = await talk.run(f"ask:{house.cwd}/made")
    assert saw(events, "approval_requested") == []


async def test_calls_that_end_together_can_be_decided_one_after_the_other(odd):
    talk = await odd(mode="ask")
    await decide(talk, await asked_by(talk, "pair"))
    await decide(talk, (await talk.until("approval_requested"))[-1], "deny")
    results = saw(await talk.until("done"), "tool_result")
    assert {(one["content"][0]["text"], one["is_error"]) for one in results} == {("p-1", False), ("p-2", True)}


async def test_nobody_there_denies_when_the_prompt_says_so(odd, house):
    talk = await odd(await house.connect(), mode="ask")
    await talk.run(f"ask:{house.cwd}/made", unattended="deny")
    assert not (house.cwd / "made").exists()


# --- what such a session does not have --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("compact", {}),
        ("session.side_question", {"question": "why?"}),
        ("session.configure", {"model": "gpt-5.5", "provider": "openai"}),
        ("session.configure", {"reasoning": "high"}),
        ("get_models", {}),
        ("set_model", {"model": "gpt-5.5"}),
        ("session.configure", {"fallback": ["openai/gpt-5.5"]}),
        ("run_command", {"name": "plan"}),
    ],
)
async def test_what_only_our_own_runs_have_is_refused_in_a_sentence(odd, command, fields):
    talk = await odd()
    answer = await talk.client.answer(command, session=talk.id, **fields)
    assert "odd runs the turns of this session" in answer["error"]


async def test_its_mode_and_budget_can_be_changed(odd):
    talk = await odd()
    await talk.ask("session.configure", mode="read-only", budget_usd=1.0)
    (found,) = (await talk.client.ask("session.list"))["sessions"]
    assert found["mode"] == "read-only"


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"agent": "nobody"}, 'there is no adapter "nobody"; there are claude, '),
        ({"model": "gpt-5.5"}, "odd runs the turns of this session; leave out a model"),
        ({"system_prompt": "Be odd."}, "odd runs the turns of this session; leave out a system prompt"),
    ],
)
async def test_a_session_that_cannot_be_is_refused(house, wish, sentence):
    client = await house.connect()
    answer = await client.answer("session.create", **({"cwd": str(house.cwd), "agent": "odd"} | wish))
    assert answer["error"].startswith(sentence)


async def test_beginning_one_needs_the_role_to_approve(house):
    client = await house.connect(role="submit")
    answer = await client.answer("session.create", cwd=str(house.cwd), agent="odd", mode="read-only")
    assert answer["code"] == "forbidden"
