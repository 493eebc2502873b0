"""Earlier prompts of all sessions, for whoever wants to ask something again."""

import base64
import signal

from zotd.testing.script import text

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(600_000)).decode()


def answers(_):
    return text("done")


async def asked(client, **fields):
    page = await client.ask("prompt.history", **fields)
    return [one["text"] for one in page["prompts"]], page.get("cursor")


async def test_prompts_of_all_sessions_come_newest_first_and_equal_ones_once(house, model, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    server = await model(answers)
    first = await house.create("openai", server)
    second = await house.create("openai", server, cwd=str(other))
    for talk, message in [
        (first, "run the tests"),
        (second, "why?"),
        (first, "fix it\nall"),
        (second, "run the tests"),
    ]:
        await talk.run(message)
    assert await asked(first.client) == (["run the tests", "fix it\nall", "why?"], None)
    newest = (await first.client.ask("prompt.history"))["prompts"][0]
    assert (newest["session"], newest["cwd"]) == (second.id, str(other))
    assert newest["time"].endswith("Z")


async def test_a_query_finds_what_holds_it_in_upper_or_lower_case(house, model):
    talk = await house.create("openai", await model(answers))
    for message in ("Größe ändern", "100% sure_thing", "other"):
        await talk.run(message)
    assert await asked(talk.client, query="GRÖSSE") == (["Größe ändern"], None)
    assert await asked(talk.client, query="0% s") == (["100% sure_thing"], None)
    assert await asked(talk.client, query="e_t") == (["100% sure_thing"], None)
    assert await asked(talk.client, query="'; --") == ([], None)
    assert await talk.client.refused("prompt.history", query="x" * 1_001) == "bad_request"


async def test_pages_go_on_where_the_one_before_ended(house, model):
    talk = await house.create("openai", await model(answers))
    for number in range(5):
        await talk.run(f"number {number}")
    found, cursor = await asked(talk.client, limit=2)
    await talk.run("later")
    rest, end = await asked(talk.client, limit=3, cursor=cursor)
    assert found + rest == [f"number {number}" for number in (4, 3, 2, 1, 0)]
    assert end is None
    for wrong in ("x", "-1", "9" * 30, ""):
        assert await talk.client.refused("prompt.history", cursor=wrong) == "bad_request"


async def test_a_page_fits_into_a_frame_and_a_prompt_into_its_share(house, model):
    talk = await house.create("openai", await model(answers))
    for number in range(14):
        await talk.run(f"{number} " + "\x01" * 70_000)  # six bytes each in JSON
    found, cursor = await asked(talk.client)
    assert len(found) < 14
    assert all(len(one.encode()) == 64 * 1024 for one in found)
    rest, _ = await asked(talk.client, cursor=cursor)
    assert len(found) + len(rest) == 14


async def test_images_and_forks_add_nothing_and_deleted_sessions_take_theirs_along(house, model):
    admin = await house.connect(role="admin")
    talk = await house.create("openai", await model(answers), client=admin)
    image = {"mime_type": "image/png", "data": PIXEL}
    for number in range(10):
        await talk.run(f"look {number}", images=[image])
    await talk.run("", images=[image])
    fork = (await talk.ask("session.fork"))["session"]["id"]
    page = await admin.ask("prompt.history")
    assert [one["text"] for one in page["prompts"]] == [f"look {number}" for number in range(9, -1, -1)]
    assert {one["session"] for one in page["prompts"]} == {talk.id}
    await admin.ask("session.delete", session=talk.id)
    assert {one["session"] for one in (await admin.ask("prompt.history"))["prompts"]} <= {fork}
    await admin.ask("session.delete", session=fork)
    assert await asked(admin) == ([], None)


async def test_prompts_outlive_the_daemon_and_ephemeral_sessions_keep_theirs_to_themselves(process, model):
    server = await model(answers)
    kept = await process.create("openai", server)
    gone = await process.create("openai", server, ephemeral=True)
    await kept.run("keep this")
    await gone.run("forget this")
    process.restart(signal.SIGKILL)
    assert await asked(await process.connect()) == (["keep this"], None)
