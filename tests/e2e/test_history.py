"""Going back, and on from there: rewind, fork, tree, export and import of sessions in a real daemon."""

import asyncio
import json

import pytest

from tests.e2e.conftest import words
from zotd.testing.script import CallPart, calls, text


@pytest.fixture
async def talk(house, model):
    """A session in which three prompts were answered: their messages have the numbers in `seqs`."""
    answers = [text(f"answer {number}") for number in range(1, 9)]
    talk = await house.create("openai", await model(*answers), await house.connect(role="admin"))
    for number in (1, 2, 3):
        await talk.run(f"prompt {number}")
    talk.seqs = [message["seq"] for message in await history(talk)]
    return talk


@pytest.fixture
async def busy(house, model):
    """A session that was prompted twice and answered once: a tool is at work on the second prompt."""
    slow = calls(CallPart("bash", {"command": "sleep 30"}))
    talk = await house.create("openai", await model(text("hi"), slow, text("done")))
    await talk.run("first")
    await talk.ask("prompt", message="second")
    await talk.until("tool_call")
    return talk


async def aborted(talk):
    """End what runs there."""
    await talk.ask("abort")
    await talk.until("done")


async def history(talk, **fields):
    return (await talk.ask("session.history", **fields))["messages"]


async def seen(talk, **fields):
    """What people see of the conversation."""
    return [words(message["content"])[0] for message in await history(talk, **fields)]


async def known(talk):
    """What the model sees of it."""
    return [said[0] for _, said in await talk.texts()]


async def exported(talk, form="jsonl"):
    pages: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await talk.ask("session.export", format=form, after=after)
        pages.append(page["text"])
        after = page.get("next")
    return "".join(pages)


def written(folder, content):
    """The path of a file with this content."""
    path = folder / "talk.jsonl"
    path.write_text(content)
    return str(path)


FIRST = ["prompt 1", "answer 1"]


# --- rewind -----------------------------------------------------------------------------------------------------


async def test_after_a_rewind_the_model_and_clients_see_the_new_branch(talk):
    await talk.ask("session.rewind", seq=talk.seqs[1])
    (told,) = await talk.until("rewound")
    assert told["to"] == talk.seqs[1]
    assert (await known(talk), await seen(talk)) == (FIRST, FIRST)
    await talk.run("other")
    assert await known(talk) == await seen(talk) == [*FIRST, "other", "answer 4"]
    snapshot = await talk.client.ask("attach", session=talk.id)
    assert [words(message["content"])[0] for message in snapshot["messages"]] == [*FIRST, "other", "answer 4"]


async def test_an_abandoned_branch_can_be_read_and_restored(talk):
    await talk.ask("session.rewind", seq=talk.seqs[1])
    assert await seen(talk, at=talk.seqs[3]) == [*FIRST, "prompt 2", "answer 2"]
    await talk.ask("session.rewind", seq=talk.seqs[3])
    assert await known(talk) == [*FIRST, "prompt 2", "answer 2"]


async def test_a_rewind_holds_across_a_kill(process, model):
    server = await model(*[text(f"answer {number}") for number in range(1, 9)])
    talk = await process.create("openai", server)
    for number in (1, 2):
        await talk.run(f"prompt {number}")
    seq = (await history(talk))[1]["seq"]
    await talk.ask("session.rewind", seq=seq)
    await asyncio.to_thread(process.restart, 9)
    again = await process.follow(talk.id)
    assert await known(again) == await seen(again) == FIRST


async def test_one_goes_back_to_before_a_clear(talk):
    await talk.ask("clear")
    await talk.ask("session.rewind", seq=talk.seqs[5])
    assert len(await known(talk)) == 6


async def test_a_busy_session_is_not_rewound(busy):
    (first, *_) = await history(busy)
    assert await busy.refused("session.rewind", seq=first["seq"]) == "busy"
    await aborted(busy)
    await busy.ask("session.rewind", seq=first["seq"])


async def test_a_rewind_goes_neither_to_other_records_nor_between_calls(house, model):
    talk = await house.create("openai", await model(calls(CallPart("bash", {"command": "true"})), text("done")))
    await talk.run("go")
    asked, wanted, answered, _ = (message["seq"] for message in await history(talk))
    assert await talk.refused("session.rewind", seq=2) == "not_found"
    response = await talk.client.answer("session.rewind", session=talk.id, seq=wanted)
    assert response["code"] == "bad_request"
    assert response["error"].endswith(f"the last valid message before it is {asked}")
    await talk.ask("session.rewind", seq=answered)
    assert [role for role, _ in await talk.texts()] == ["user", "assistant", "tool"]


# --- fork and tree ----------------------------------------------------------------------------------------------


async def test_a_fork_continues_independently_from_the_shared_records(house, talk):
    made = await talk.ask("session.fork", seq=talk.seqs[1], name="branch")
    assert (made["session"]["name"], made["session"]["cwd"]) == ("branch", str(house.cwd))
    fork = await house.follow(made["session"]["id"])
    assert (await known(fork), await seen(fork)) == (FIRST, FIRST)
    await fork.run("only here")
    assert await known(fork) == [*FIRST, "only here", "answer 4"]
    assert len(await known(talk)) == 6


async def test_without_a_place_it_has_everything_and_is_called_after_the_other(house, talk):
    made = await talk.ask("session.fork")
    assert made["session"]["name"] == "prompt 1 (fork)"
    fork = await house.follow(made["session"]["id"])
    assert await known(fork) == await known(talk)
    assert fork.snapshot["seq"] == made["seq"]


async def test_a_session_that_runs_is_forked_where_it_was_whole_last(house, busy):
    fork = await house.follow((await busy.ask("session.fork"))["session"]["id"])
    assert [role for role, _ in await fork.texts()] == ["user", "assistant", "user"]
    assert await fork.state() == "idle"
    assert fork.snapshot["queue"] == []
    await aborted(busy)


async def test_inputs_that_wait_stay_where_they_are(house, busy):
    await busy.ask("prompt", message="third")
    fork = await house.follow((await busy.ask("session.fork"))["session"]["id"])
    assert fork.snapshot["queue"] == []
    assert len((await busy.ask("queue.list"))["items"]) == 1
    await aborted(busy)


async def test_the_tree_shows_branches_and_forks(talk):
    await talk.ask("session.rewind", seq=talk.seqs[1])
    await talk.run("other")
    made = await talk.ask("session.fork", seq=talk.seqs[3])
    tree = await talk.ask("session.tree")
    first, second = tree["branches"]
    assert (first["text"], first["messages"], first.get("at")) == ("prompt 1", 6, None)
    assert (second["text"], second["messages"], second["at"]) == ("other", 2, talk.seqs[1])
    assert tree["forks"] == [{"session": made["session"]["id"], "name": "prompt 1 (fork)", "at": talk.seqs[3]}]
    of_fork = await talk.client.ask("session.tree", session=made["session"]["id"])
    assert of_fork["origin"] == {"session": talk.id, "name": "prompt 1", "at": talk.seqs[3]}


async def test_words_of_both_are_found_once_and_what_was_rewound_is_found_too(talk):
    await talk.ask("session.fork")
    await talk.ask("session.rewind", seq=talk.seqs[1])
    (hit,) = (await talk.client.ask("session.search", query='"answer 3"'))["hits"]
    assert (hit["session"], hit["seq"]) == (talk.id, talk.seqs[5])
    assert (await seen(talk, at=hit["seq"]))[-1] == "answer 3"


async def test_a_fork_has_spent_nothing_yet(house, talk):
    made = await talk.ask("session.fork")
    fork = await house.follow(made["session"]["id"])
    assert (await fork.ask("get_state"))["usage"]["output"] == 0
    rows = (await talk.client.ask("usage.report", by="session"))["rows"]
    assert [row["key"] for row in rows] == [talk.id]


async def test_an_ephemeral_session_goes_back_and_is_not_forked(house, model):
    talk = await house.create("openai", await model(text("one"), text("two")), ephemeral=True)
    await talk.run("first")
    await talk.run("second")
    await talk.ask("session.rewind", seq=(await history(talk))[1]["seq"])
    assert await known(talk) == ["first", "one"]
    assert await talk.refused("session.fork") == "unsupported"
    assert await talk.refused("session.tree") == "unsupported"


async def test_everybody_hears_of_a_fork(house, talk):
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    made = await talk.ask("session.fork")
    assert (await watcher.until("session_added"))[-1]["session"] == made["session"]["id"]


# --- export and import ------------------------------------------------------------------------------------------


async def test_an_export_has_every_record_with_the_data_of_images_and_every_event(house, model):
    talk = await house.create("openai", await model(text("hi")))
    picture = {"mime_type": "image/png", "data": "iVBORw=="}
    shown = [event for event in await talk.run("look", images=[picture]) if "seq" in event]
    lines = [json.loads(line) for line in (await exported(talk)).splitlines()]
    assert [lines[0]["type"], lines[0]["id"], lines[-1]["type"]] == ["session", talk.id, "end"]
    told = [line for line in lines if line["type"] == "record"]
    assert [line["number"] for line in told] == list(range(1, lines[-1]["records"] + 1))
    (prompt,) = [line["body"] for line in told if line["body"]["kind"] == "input"]
    assert [block["data"] for block in prompt["content"] if block["type"] == "image"] == ["iVBORw=="]
    assert [line for line in lines if "seq" in line] == shown


async def test_a_markdown_export_has_the_current_branch(talk):
    await talk.ask("session.rewind", seq=talk.seqs[1])
    await talk.run("other")
    told = await exported(talk, "markdown")
    assert "prompt 2" not in told
    assert told.index("answer 1") < told.index("**Rewound**") < told.index("other")


async def test_an_imported_export_continues_where_it_was(house, talk, tmp_path):
    await talk.ask("session.rewind", seq=talk.seqs[1])
    file = written(tmp_path, await exported(talk))
    made = await talk.client.ask("session.import", path=file)
    again = await house.follow(made["session"]["id"])
    assert await known(again) == await seen(again) == FIRST
    assert await seen(again, at=talk.seqs[5]) == await seen(talk, at=talk.seqs[5])
    await again.ask("session.rewind", seq=talk.seqs[5])
    assert len(await known(again)) == 6
    twice = await talk.client.ask("session.import", path=file)
    assert (twice["session"]["id"], twice["known"]) == (made["session"]["id"], True)


async def test_only_an_admin_imports(house, tmp_path):
    client = await house.connect()
    assert await client.refused("session.import", path=str(tmp_path / "x.jsonl")) == "forbidden"


async def test_a_session_that_was_exported_while_it_waited_for_a_tool_can_go_on(house, model, tmp_path):
    slow = calls(CallPart("bash", {"command": "sleep 30"}))
    server = await model(slow, text("done"), text("more"))
    talk = await house.create("openai", server, await house.connect(role="admin"))
    await talk.ask("prompt", message="go")
    await talk.until("tool_call")
    await talk.ask("prompt", message="later")
    made = await talk.client.ask("session.import", path=written(tmp_path, await exported(talk)))
    again = await house.follow(made["session"]["id"])
    assert [role for role, _ in await again.texts()] == ["user", "assistant", "tool"]
    assert (await again.state(), again.snapshot["queue"]) == ("idle", [])
    await aborted(talk)
