"""Images in prompts: chosen, pasted, sent and shown."""

import base64
import struct
import zlib

import pytest
from playwright.async_api import expect

from tests.page.world import PHONE, entry
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASTE = """([name, type, data]) => {
  const pasted = new DataTransfer();
  pasted.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type }));
  const fields = { clipboardData: pasted, bubbles: true, cancelable: true };
  document.getElementById("prompt").dispatchEvent(new ClipboardEvent("paste", fields));
}"""


def png(width=2, height=2):
    """A red picture."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def picture(name="red.png", data=None, kind="image/png"):
    return {"name": name, "mimeType": kind, "buffer": png() if data is None else data}


async def choose(page, *files):
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Image", exact=True).click()
    await (await choosing.value).set_files(list(files))


def sent(world):
    """The images that the model was shown last, as media type and bytes."""
    urls = [
        part["image_url"]["url"] for part in world.model.requests[-1].messages[-1]["content"] if "image_url" in part
    ]
    split = [url.removeprefix("data:").split(";base64,") for url in urls]
    return [(kind, base64.b64decode(data)) for kind, data in split]


async def test_images_are_chosen_and_pasted_sent_and_shown(world, token):
    world.answers.extend([text("both are red"), text("nothing to see")])
    async with world.page(token, await world.session("Gallery", mode="yolo"), **PHONE) as page:
        await choose(page, picture("first.png"), picture("second.png"))
        waiting = page.get_by_role("list", name="Images to send")
        await expect(waiting.get_by_role("img")).to_have_count(2)
        await page.evaluate(PASTE, ["third.png", "image/png", base64.b64encode(png()).decode()])
        await expect(waiting.get_by_role("img")).to_have_count(3)
        await page.get_by_role("button", name="Remove first.png").click()
        await expect(waiting.get_by_role("img")).to_have_count(2)
        await page.get_by_label("Prompt").fill("what colour?")
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "both are red")).to_be_visible()
        await expect(waiting).to_be_hidden()
        assert sent(world) == [("image/png", png())] * 2
        shown = page.locator(".user").get_by_role("img", name="Image 1 of 2")
        await expect(shown).to_be_visible()
        assert await shown.evaluate("image => image.naturalWidth") == 2
        await page.reload()
        await expect(page.locator(".user").get_by_role("img", name="Image 2 of 2")).to_be_visible()
        await page.get_by_role("button", name="Image 2 of 2").click()
        await expect(page.get_by_role("button", name="Image 2 of 2")).to_have_attribute("aria-expanded", "true")
        assert await page.evaluate("document.documentElement.scrollWidth") == 390
        # A prompt may be an image alone.
        await choose(page, picture())
        await expect(waiting.get_by_role("img")).to_have_count(1)
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "nothing to see")).to_be_visible()


async def test_a_large_image_is_made_smaller(world, token):
    world.answers.append(text("a line"))
    async with world.page(token, await world.session("Panorama", mode="yolo")) as page:
        await choose(page, picture("panorama.png", png(4000, 20)))
        await expect(page.get_by_role("list", name="Images to send").get_by_role("img")).to_be_visible()
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "a line")).to_be_visible()
        shown = page.locator(".user").get_by_role("img")
        await expect(shown).to_be_visible()
        size = await shown.evaluate("image => [image.naturalWidth, image.naturalHeight]")
        assert size == [2000, 10]
    assert [kind for kind, _ in sent(world)] == ["image/jpeg"]


async def test_a_file_that_is_no_image_is_told_in_a_sentence(world, token):
    async with world.page(token, await world.session("Papers", mode="yolo")) as page:
        await choose(page, picture("notes.png", b"not a picture"))
        problem = page.get_by_role("alert").filter(has_text="notes.png is not an image that this browser can read.")
        await expect(problem).to_be_visible()
        await expect(page.get_by_role("list", name="Images to send")).to_be_hidden()


async def test_the_image_that_a_tool_has_read_is_shown(world, token):
    (world.daemon.place.cwd / "shot.png").write_bytes(png())
    world.answers.extend([calls(CallPart("read", {"path": "shot.png"})), text("it is red")])
    async with world.page(token, await world.session("Shots", mode="yolo")) as page:
        await page.get_by_label("Prompt").fill("look")
        await page.get_by_role("button", name="Send").click()
        await expect(entry(page, "it is red")).to_be_visible()
        await expect(page.locator(".tool").get_by_role("img", name="Image 1 of 1")).to_be_visible()
        await page.reload()
        await expect(page.locator(".tool").get_by_role("img", name="Image 1 of 1")).to_be_visible()
