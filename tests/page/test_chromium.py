"""The page in a real browser, in front of a real daemon: what a person sees and does."""

import asyncio
import json

import pytest
from playwright.async_api import expect

from tests.page.world import entry
from zotd.testing.script import CallPart, Gate, ScriptedReply, TextPart, ThinkingPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"> <script>document.title='owned'</script> "
    "\x1b[31mred\x1b]0;owned\x07 \u202egpj.exe [here](javascript:document.title='owned') "
    "![p](http://192.0.2.1/p.png) [docs](https://docs.example/a)"
)


async def test_a_wrong_token_is_refused_in_a_sentence(world):
    async with world.page(token="zot_wrong") as page:
        await expect(page.get_by_role("alert").first).to_have_text("The token is not accepted.")
        assert await page.evaluate("sessionStorage.length") == 0
        await expect(page.get_by_label("Token")).to_be_focused()


async def test_the_list_tells_what_each_session_does_as_it_happens(world, token):
    go = asyncio.Event()
    async with world.page(token) as page:
        session = await world.session("Gardening", mode="ask")
        row = page.get_by_role("listitem").filter(has_text="Gardening")
        await expect(row).to_contain_text("idle")
        world.answers.extend([ScriptedReply([Gate(go), CallPart("bash", {"command": "true"})])])
        await world.ask("prompt", session=session, message="go")
        await expect(row).to_contain_text("working")
        go.set()
        await expect(row).to_contain_text("needs you")
        await expect(page).to_have_title("(1) zot")
        await world.ask("abort", session=session)
        await expect(row).to_contain_text("idle")
        await world.run(session, "and now nobody answers")
        await expect(row).to_contain_text("failed")


class HeldList:
    """Holds back the response to the second request for a list of sessions, until the test lets it go."""

    def __init__(self):
        self.reached = asyncio.Event()
        self._asked = 0
        self._id = None
        self._held = []

    async def prepare(self, page):
        await page.route_web_socket("**/v1", self._route)

    def release(self):
        for socket, message in self._held:
            socket.send(message)

    def _route(self, socket):
        server = socket.connect_to_server()

        def asked(message):
            frame = json.loads(message)
            if frame["type"] == "session.list":
                self._asked += 1
                self._id = frame["id"] if self._asked == 2 else self._id
            server.send(message)

        def answered(message):
            frame = json.loads(message)
            if frame["type"] == "response" and self._id is not None and frame.get("id") == self._id:
                self._held.append((socket, message))
                self.reached.set()
            else:
                socket.send(message)

        socket.on_message(asked)
        server.on_message(answered)


async def test_a_session_that_begins_while_the_list_is_read_is_shown(world, token):
    held = HeldList()
    await world.session("Earlier")
    async with world.page(token, prepare=held.prepare) as page:
        await held.reached.wait()
        await world.session("Meanwhile")
        await expect(page.get_by_role("listitem").filter(has_text="Meanwhile")).to_contain_text("idle")  # by its event
        held.release()
        await expect(page.get_by_role("listitem").filter(has_text="Earlier")).to_contain_text("idle")
        await expect(page.get_by_role("listitem").filter(has_text="Meanwhile")).to_be_visible()


async def test_an_answer_is_shown_as_it_comes_with_its_thoughts_and_tools(world, token):
    go, on = asyncio.Event(), asyncio.Event()
    count = CallPart("bash", {"command": "seq 30"})
    world.answers.extend(
        [
            ScriptedReply([ThinkingPart(["Hm."]), TextPart(["**Once**"]), Gate(go), TextPart([" upon"]), count]),
            ScriptedReply([Gate(on), TextPart(["a `time`"])]),
        ]
    )
    async with world.page(token, await world.session("Tales", mode="yolo")) as page:
        await page.get_by_label("Prompt").fill("tell me")
        await page.keyboard.press("Enter")
        await expect(entry(page, "Once")).to_be_visible()
        await expect(page.locator(".thought")).to_contain_text("Thought")
        await expect(page.get_by_role("button", name="Abort")).to_be_visible()
        go.set()
        await expect(page.locator(".reply").first).to_have_text("Once upon")
        await expect(page.locator(".tool")).to_contain_text("seq 30")
        await page.get_by_label("Prompt").fill("and then?")
        await page.get_by_role("button", name="Queue").click()
        await expect(page.get_by_label("What waits")).to_contain_text("and then?")
        await page.get_by_role("button", name="Take back: and then?").click()
        await expect(page.get_by_label("What waits")).to_be_hidden()
        on.set()
        await expect(page.locator(".reply code")).to_have_text("time")
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await expect(page.locator(".entry")).to_have_count(5)


async def test_an_answer_on_one_page_closes_the_question_on_the_other(world, token):
    session = await world.session("Orchard", mode="ask")
    world.answers.extend([calls(CallPart("write", {"path": "tree.txt", "content": "apple\n"})), text("planted")])
    async with world.page(token, session) as first, world.page(token, session) as second:
        await first.get_by_label("Prompt").fill("plant")
        await first.get_by_role("button", name="Send").click()
        for page in (first, second):
            await expect(page.get_by_role("heading", name="Allow write?")).to_be_visible()
        await expect(first.get_by_label("What it would do")).to_contain_text("apple")
        await expect(first.get_by_role("button", name="Allow for this session")).to_be_visible()
        await second.get_by_role("button", name="Allow every edit and write in").click()
        for page in (first, second):
            await expect(page.get_by_role("heading", name="Allow write?")).to_be_hidden()
            await expect(entry(page, "planted")).to_be_visible()
        await expect(entry(first, "approved by page: write")).to_be_visible()
    assert (world.daemon.place.cwd / "tree.txt").read_text() == "apple\n"


async def test_a_refusal_carries_its_reason_to_the_model(world, token):
    world.answers.extend([calls(CallPart("bash", {"command": "rm -rf tree"})), text("I see")])
    async with world.page(token, await world.session("Forest", mode="ask")) as page:
        await page.get_by_label("Prompt").fill("clear it")
        await page.keyboard.press("Enter")
        await page.get_by_label("because").fill("it is too old to go")
        await page.get_by_role("button", name="Deny").click()
        await expect(entry(page, "I see")).to_be_visible()
        await expect(page.locator(".tool")).to_contain_text("failed")
    assert "it is too old to go" in str(world.model.requests[-1].messages)


async def test_what_a_model_writes_stays_text(world, token):
    session = await world.session("<b>Bold</b>", mode="yolo")
    (world.daemon.place.cwd / "hostile.txt").write_text(HOSTILE)
    world.answers.extend([calls(CallPart("bash", {"command": "cat hostile.txt"})), text(HOSTILE)])
    async with world.page(token, session) as page:
        await page.get_by_label("Prompt").fill(HOSTILE)
        await page.keyboard.press("Enter")
        reply = page.locator(".reply")
        await expect(reply).to_contain_text("<img src=x onerror=")
        for place in (reply, page.locator(".tool .output"), page.locator(".user")):
            await expect(place).to_contain_text("red^[]0;owned^G <U+202E>gpj.exe")
        await expect(reply).to_contain_text("docs (https://docs.example/a)")
        assert await page.locator("main img, main script, main b").count() == 0
        assert await reply.get_by_role("link").evaluate_all("found => found.map(a => [a.href, a.rel])") == [
            ["http://192.0.2.1/p.png", "noreferrer noopener"],
            ["https://docs.example/a", "noreferrer noopener"],
        ]
        await expect(page.locator("#title")).to_have_text("<b>Bold</b>")
        assert "owned" not in await page.title()


async def test_a_page_comes_back_after_a_restart_and_shows_each_thing_once(world, token):
    session = await world.session("Voyage", mode="yolo")
    world.answers.extend([text("first leg"), text("second leg"), text("third leg")])
    async with world.page(token, session) as page:
        await page.get_by_label("Prompt").fill("sail")
        await page.keyboard.press("Enter")
        await expect(entry(page, "first leg")).to_be_visible()
        await page.get_by_label("Prompt").fill("a draft")
        await page.context.set_offline(True)
        world.restart()
        await world.ask("session.configure", session=session, secrets={"api_key": "k"})
        await world.run(session, "on")
        await page.context.set_offline(False)
        await expect(entry(page, "second leg")).to_be_visible()
        await expect(page.get_by_label("Prompt")).to_have_value("a draft")
        await page.get_by_label("Prompt").fill("further")
        await page.keyboard.press("Enter")
        await expect(entry(page, "third leg")).to_be_visible()
        shown = await page.locator(".user p, .reply p").all_text_contents()
        assert shown == ["sail", "first leg", "on", "second leg", "further", "third leg"]


async def test_a_token_that_may_only_read_gets_no_prompt_box(world):
    session = await world.session("Museum", mode="ask")
    world.answers.append(calls(CallPart("bash", {"command": "true"})))
    async with world.page(await world.token("reader", "read"), session) as page:
        await world.ask("prompt", session=session, message="look")
        await expect(page.get_by_text("This token cannot approve calls.")).to_be_visible()
        await expect(page.get_by_label("Prompt")).to_be_hidden()
        await expect(page.get_by_role("button", name="Allow once")).to_have_count(0)
        await world.ask("abort", session=session)


async def test_five_thousand_deltas_and_thirty_turns_leave_a_bounded_page(world, token):
    session = await world.session("Flood", mode="yolo")
    world.answers.append(ScriptedReply([TextPart([f"w{number} " for number in range(5000)])], joined=True))
    async with world.page(token, session) as page:
        await page.get_by_label("Prompt").fill("much")
        await page.keyboard.press("Enter")
        await expect(page.locator(".reply")).to_contain_text("w4999")
        assert (await page.locator(".reply").text_content()).split() == [f"w{number}" for number in range(5000)]
        world.answers.extend(text(f"answer {number}") for number in range(30))
        for number in range(30):
            await world.ask("prompt", session=session, message=f"question {number}")
        await expect(entry(page, "answer 29")).to_be_visible()
        await page.reload()
        await expect(entry(page, "answer 29")).to_be_visible()
        await expect(page.locator(".entry")).to_have_count(50)
        await page.get_by_role("button", name="Older messages").click()
        await expect(page.locator(".entry")).to_have_count(62)
        await expect(page.locator(".user").first).to_have_text("Youmuch")


async def test_a_narrow_screen_shows_one_thing_at_a_time(world, token):
    session = await world.session("Path " + "x" * 190, mode="ask")
    link = "[a](https://a.example/" + "z" * 300 + ")"
    world.answers.append(calls(CallPart("bash", {"command": "echo " + "y" * 500}), before=link))
    async with world.page(token, viewport={"width": 360, "height": 740}) as page:
        await page.get_by_role("link", name="Path").click()
        await page.get_by_label("Prompt").fill("walk")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("button", name="Allow once")).to_be_visible()
        await page.get_by_label("Prompt").fill("a long way " * 20)
        await page.get_by_role("button", name="Queue").click()
        await expect(page.get_by_role("button", name="Take back")).to_be_in_viewport(ratio=1)
        assert await page.evaluate("document.documentElement.scrollWidth") == 360
        await expect(page.get_by_role("navigation")).to_be_hidden()
        await page.get_by_role("link", name="Sessions").click()
        await expect(page.get_by_role("navigation")).to_be_visible()
        await expect(page.get_by_role("main")).to_be_hidden()
        await world.ask("abort", session=session)
