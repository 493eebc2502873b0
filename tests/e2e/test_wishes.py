"""What a session wants and its model does not take: the user is told once, and the run goes on without it."""

import pytest

from zotd.testing.script import CallPart, Refusal, calls, text

PICTURE = {"mime_type": "image/png", "data": "iVBORw=="}

MODELS = """
[[models]]
provider = "openai"
id = "blind"
images = false

[[models]]
provider = "openai"
id = "talks"
tools = false
"""


@pytest.fixture
def configured(tmp_path):
    home = tmp_path / "zot"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(MODELS)


@pytest.fixture
def look_at_picture(house):
    (house.cwd / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 30)
    return calls(CallPart("read", {"path": "a.png"}))


async def told(talk, look, *prompts):
    """The notices of each run."""
    found = []
    for fields in prompts:
        shown = await talk.run(**fields)
        assert not look.only(shown, "error")
        found.append([notice["text"] for notice in look.only(shown, "notice")])
    return found


async def test_images_that_the_model_does_not_take_are_told_once(configured, house, model, look):
    server = await model(*[text("fine")] * 4)
    talk = await house.create("openai", server, model="blind")
    nothing, one, *later = await told(talk, look, {}, {"images": [PICTURE]}, {}, {"images": [PICTURE]})
    assert (nothing, later) == ([], [[], []])
    assert one == ["blind takes no images, so they are left out of its requests; choose another model for them"]
    assert "iVBORw" not in str([request.body for request in server.requests])


async def test_an_image_that_a_tool_brings_is_told_in_the_middle_of_the_run(
    configured, house, model, look, look_at_picture
):
    server = await model(look_at_picture, text("fine"), text("fine"))
    talk = await house.create("openai", server, model="blind")
    one, later = await told(talk, look, {}, {})
    assert [len(one), later] == [1, []]


async def test_a_model_that_takes_no_tools_is_said_to_only_talk(configured, house, model, look):
    server = await model(*[text("fine")] * 3)
    talk = await house.create("openai", server, model="talks")
    one, later = await told(talk, look, {}, {})
    assert one == ["talks takes no tools, so it can only talk and does nothing to files; choose another model for that"]
    assert later == []
    bare = await house.create("openai", server, model="talks", no_tools=True)
    assert await told(bare, look, {}) == [[]]


async def test_a_model_whose_vendor_refuses_tools_answers_without_them(house, model, look):
    words = "registry.ollama.ai/library/m:latest does not support tools"
    server = await model(Refusal(400, words), text("fine"), text("fine"))
    talk = await house.create("openai", server, model="m")
    one, later = await told(talk, look, {}, {})
    assert later == []
    assert len(one) == 1
    assert words in one[0]
    assert [bool(request.body.get("tools")) for request in server.requests] == [True, False, False]


async def test_another_model_is_told_of_again_and_so_is_another_session(configured, house, model, look):
    server = await model(lambda _: text("fine"))
    talk = await house.create("openai", server, model="blind")
    assert [len(found) for found in await told(talk, look, {"images": [PICTURE]})] == [1]
    await talk.ask("set_model", model="talks", provider="openai")
    assert [len(found) for found in await told(talk, look, {})] == [1]
    await talk.ask("set_model", model="blind", provider="openai")
    assert [len(found) for found in await told(talk, look, {"images": [PICTURE]})] == [0]
    other = await house.create("openai", server, model="blind")
    assert [len(found) for found in await told(other, look, {"images": [PICTURE]})] == [1]
