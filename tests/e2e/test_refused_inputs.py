"""What a vendor refuses does not spoil the prompts that follow."""

import json

import pytest

from zotd.testing.script import CallPart, Refusal, calls, text

PICTURE = {"mime_type": "image/png", "data": "iVBORw=="}

LEFT_OUT = "[an image that the model's vendor refused; it is left out]"


def picky(received):
    """Takes no image, with the status that the model is named after; after a `look`, it reads a file."""
    body = json.dumps(received.messages)
    status = int(str(received.body["model"]).removeprefix("m"))
    if "iVBORw" in body:
        return Refusal(status, "Could not process image; it is no PNG")
    if "use the tool" in body and LEFT_OUT not in body:
        return calls(CallPart("read", {"path": "a.png"}))
    return text("fine")


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_refused_image_does_not_spoil_the_prompts_behind_it(house, model, vendor, look, status):
    server = await model(picky)
    talk = await house.create(vendor, server, model=f"m{status}")
    await talk.run("hello")
    failed = await talk.run("look", images=[PICTURE])
    error = look.only(failed, "error")[0]["message"]
    assert "Could not process image" in error
    assert error.endswith("the new images are left out from now on; send a prompt to continue without them")
    assert not look.only(await talk.run("and now?"), "error")
    assert LEFT_OUT in json.dumps(server.requests[-1].messages)


async def test_a_refused_image_stays_left_out_after_a_restart(process, model, vendor, look):
    server = await model(picky)
    talk = await process.create(vendor, server, model="m400")
    await talk.run("look", images=[PICTURE])
    process.restart(9)
    again = await process.follow(talk.id)
    await again.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
    assert not look.only(await again.run("and now?"), "error")
    assert LEFT_OUT in json.dumps(server.requests[-1].messages)


async def test_an_image_that_a_tool_brought_is_left_out_too(house, model, vendor, look):
    (house.cwd / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 30)
    server = await model(picky)
    talk = await house.create(vendor, server, model="m400")
    failed = await talk.run("use the tool")
    assert "are left out from now on" in look.only(failed, "error")[0]["message"]
    assert not look.only(await talk.run("and now?"), "error")


async def test_an_image_that_a_reply_has_followed_stays(house, model, vendor):
    server = await model(text("a cat"), Refusal(400, "no"), text("fine"))
    talk = await house.create(vendor, server)
    await talk.run("look", images=[PICTURE])
    await talk.run("again")
    await talk.run("and now?")
    assert "iVBORw" in json.dumps(server.requests[-1].messages)
