"""Sessions as things with names: found, listed, changed, exported, let go."""

import json

import pytest

from zotd.testing.script import text


async def test_a_session_is_found_by_its_id_the_beginning_of_it_or_its_name(house):
    client = await house.connect()
    options = {"cwd": str(house.cwd), "provider": "ollama", "model": "m"}
    first = (await client.ask("session.create", **options, name="sea"))["session"]
    second = (await client.ask("session.create", **options, name="sea"))["session"]
    third = (await client.ask("session.create", **options, name="land"))["session"]
    assert (await client.ask("session.get", session="land"))["id"] == third["id"]
    assert (await client.ask("session.get", session=first["id"]))["id"] == first["id"]
    # Ids of one millisecond differ in the last characters alone.
    beginnings = [second["id"][:end] for end in range(1, len(second["id"]) + 1)]
    own = [one for one in beginnings if not first["id"].startswith(one) and not third["id"].startswith(one)]
    assert (await client.ask("session.get", session=own[0]))["id"] == second["id"]
    assert await client.refused("session.get", session="sea") == "conflict"
    assert await client.refused("session.get", session="sky") == "not_found"


async def test_sessions_are_listed_newest_first_in_pages_and_by_directory(house, tmp_path):
    client = await house.connect()
    other = tmp_path / "other"
    other.mkdir()
    made = [
        (await client.ask("session.create", cwd=str(cwd), provider="ollama", model="m"))["session"]["id"]
        for cwd in (house.cwd, other, house.cwd, house.cwd)
    ]
    pages: list[list[str]] = []
    cursor = None
    while not pages or cursor:
        page = await client.ask("session.list", limit=3, **({"cursor": cursor} if cursor else {}))
        pages.append([one["id"] for one in page["sessions"]])
        cursor = page.get("cursor")
    assert [name for page in pages for name in page] == made[::-1]
    assert [len(page) for page in pages] == [3, 1]
    listed = await client.ask("session.list", cwd=str(other))
    assert [one["id"] for one in listed["sessions"]] == [made[1]]


async def test_everybody_hears_of_what_becomes_of_a_session(house, model):
    watcher = await house.connect(role="admin")
    assert await watcher.refused("subscribe", topics=["weather"]) == "bad_request"
    await watcher.ask("subscribe", topics=["sessions"])
    talk = await house.create("openai", await model(text("hi")))
    assert (await watcher.until("session_added"))[-1]["session"] == talk.id
    await talk.ask("session.rename", name="sea")
    assert (await watcher.until("session_updated"))[-1]["name"] == "sea"
    changed = (await talk.until("session_changed"))[-1]
    assert (changed["name"], changed["state"]) == ("sea", "idle")
    await talk.run()
    states: list[str] = []
    while states[-1:] != ["idle"]:
        states.append((await watcher.until("session_updated"))[-1]["state"])
    assert "running" in states
    await watcher.ask("session.delete", session=talk.id)
    assert (await watcher.until("session_removed"))[-1]["session"] == talk.id
    assert await talk.refused("get_state") == "not_found"


async def test_changes_apply_from_the_next_run(house, model):
    server = await model(text("one"), text("two"), text("three"))
    talk = await house.create("openai", server, model="gpt-4o")
    await talk.run()
    await talk.ask("session.configure", system_prompt="You are a walrus.", no_tools=True, max_steps=3)
    assert await talk.ask("set_model", model="gpt-5") == {"model": "gpt-5", "provider": "openai"}
    await talk.ask("set_reasoning", reasoning="low")
    await talk.run()
    first, second = (request.body for request in server.requests)
    assert (first["model"], second["model"]) == ("gpt-4o", "gpt-5")
    assert "tools" in first
    assert not second.get("tools")
    assert "You are a walrus." in str(second["messages"])
    assert second["reasoning_effort"] == "low"
    assert await talk.refused("set_reasoning", reasoning="extreme") == "bad_request"
    assert await talk.refused("session.configure", tools=["fly"], no_tools=False, no_ext=True) == "bad_request"
    assert await talk.refused("session.rename", name=" ") == "bad_request"


async def test_the_first_prompt_names_a_session_that_has_no_name(house, model):
    talk = await house.create("openai", await model(text("hi")))
    await talk.run("count the lines\nof every file")
    assert (await talk.client.ask("session.get", session=talk.id))["name"] == "count the lines"


async def test_a_cleared_transcript_is_new_for_the_model_and_still_there_for_people(house, model, look):
    server = await model(text("one"), text("two"))
    talk = await house.create("openai", server)
    await talk.run("first")
    await talk.ask("clear")
    assert await talk.texts() == []
    await talk.run("second")
    assert "first" not in str(server.requests[1].messages)
    history = (await talk.ask("session.history"))["messages"]
    assert [look.words(message["content"])[0] for message in history] == ["first", "one", "second", "two"]


async def test_an_export_is_every_event_in_its_order(house, model):
    talk = await house.create("openai", await model(text("hi")))
    events = [event for event in await talk.run() if "seq" in event]
    lines = [json.loads(line) for line in (await talk.ask("session.export"))["text"].splitlines()]
    assert [line for line in lines if "seq" in line] == events
    assert "hi" in (await talk.ask("session.export", format="markdown"))["text"]
    assert await talk.refused("session.export", format="papyrus") == "bad_request"


@pytest.mark.parametrize("command", ["session.close", "session.delete"])
async def test_a_closed_session_comes_back_and_a_deleted_one_does_not(house, model, command):
    talk = await house.create("openai", await model(text("hi")), client=await house.connect(role="admin"))
    await talk.run()
    await talk.ask(command)
    if command == "session.delete":
        assert await talk.refused("get_messages") == "not_found"
    else:
        assert (await talk.texts())[-1] == ("assistant", ["hi"])


async def test_status_counts(house, model):
    talk = await house.create("openai", await model())
    status = await talk.client.ask("daemon.status")
    assert (status["sessions"], status["running"], status["clients"], status["warnings"]) == (1, 0, 1, [])
    assert (status["socket"], status["state"], status["epoch"]) == (house.place.socket, "running", talk.epoch)
