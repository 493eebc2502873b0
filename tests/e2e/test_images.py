"""Images of messages, which clients request one by one: events have only their sizes."""

import asyncio
import base64

from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, calls, text

FIRST, SECOND, THIRD = ({"mime_type": "image/png", "data": f"iVBORw0{n}"} for n in "ABC")


async def images(talk):
    """The `seq` and the number of images of each message that has some."""
    found = {}
    for message in (await talk.ask("session.history"))["messages"]:
        blocks = [*message["content"], *(one for block in message["content"] for one in block.get("content", []))]
        found[message["seq"]] = sum(block["type"] == "image" for block in blocks)
    return {seq: count for seq, count in found.items() if count}


async def test_the_images_of_prompts_are_returned_also_of_one_that_has_waited(house, model):
    go = asyncio.Event()
    slow = [CallPart("bash", {"command": "true"})]
    server = await model(ScriptedReply([Gate(go), *slow]), *(calls(*slow) for _ in range(12)), text("done"), text("ok"))
    talk = await house.create("openai", server)
    await talk.ask("prompt", message="look", images=[FIRST, SECOND])
    await talk.ask("prompt", message="", images=[THIRD])
    go.set()
    for _ in range(2):
        await talk.until("done")
    shown = await images(talk)
    assert list(shown.values()) == [2, 1]
    first, waited = shown
    assert await talk.ask("session.image", seq=first) == FIRST
    assert await talk.ask("session.image", seq=first, index=1) == SECOND
    assert await talk.ask("session.image", seq=waited) == THIRD


async def test_the_image_that_a_tool_has_read_is_returned(house, model):
    data = b"\x89PNG\r\n\x1a\n" + b"x" * 40
    (house.cwd / "a.png").write_bytes(data)
    talk = await house.create("openai", await model(calls(CallPart("read", {"path": "a.png"})), text("a cat")))
    await talk.run()
    (seq,) = await images(talk)
    found = await talk.ask("session.image", seq=seq)
    assert found == {"mime_type": "image/png", "data": base64.b64encode(data).decode()}


async def test_an_image_that_does_not_exist_is_told_in_a_sentence(house, model):
    talk = await house.create("openai", await model(ScriptedReply([TextPart(["hi"])])))
    await talk.run("look", images=[FIRST])
    (seq,) = await images(talk)
    for fields in ({"seq": seq, "index": 1}, {"seq": seq, "index": -1}, {"seq": seq + 1}, {"seq": 10**6}):
        assert await talk.refused("session.image", **fields) == "not_found"
