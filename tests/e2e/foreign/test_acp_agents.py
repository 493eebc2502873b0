"""Two agents that others publish, driven as users drive them: Claude Code from npm, Hermes Agent from PyPI; `make acp-agents`.

Their model is the scripted one, which does what the last prompt says: so the agents' own requests do not disturb a test.
"""

import asyncio
import json
import re
import shutil
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.e2e.conftest import House
from tests.e2e.odd import decide
from tests.needs import ABSENT, needs
from tests.page.world import WAIT_MS, World, entry
from zotd.testing.live_daemon import DaemonProcess, free_port
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

AGENT_MS = 90_000
"""For an agent's first request: it starts with the session, and a machine that is busy with the other tests is slow."""

INSTALLED = Path(sys.prefix, "acp-agents")


class Claude:
    """Claude Code, by the adapter of the ACP project."""

    name = "claude"
    program = INSTALLED / "node_modules" / ".bin" / "claude-agent-acp"

    def prepare(self, home, model):
        """Return the variables that have it ask this model."""
        assert home.exists()
        return {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-scripted", "DISABLE_TELEMETRY": "1"}

    def writing(self, path):
        """The call that writes a file."""
        return CallPart("Write", {"file_path": str(path), "content": "made\n"})


class Hermes:
    """Hermes Agent, which speaks ACP itself."""

    name = "hermes"
    program = INSTALLED / "bin" / "hermes-acp"

    def prepare(self, home, model):
        """Write the configuration that has it ask this model."""
        settings = home / ".hermes" / "config.yaml"
        settings.parent.mkdir()
        names = {"default": "scripted", "provider": "custom", "base_url": model.openai_url, "api_key": "k"}
        settings.write_text(json.dumps({"model": {**names, "context_length": 128_000}}))
        return {}

    def writing(self, path):
        """The call that writes a file."""
        return CallPart("write_file", {"path": str(path), "content": "made\n"})


class Bench:
    """One of the agents, in a daemon with a page."""

    def __init__(self, house, world, agent, env):
        self.house = house
        self.world = world
        self.agent = agent
        self.env = env

    async def session(self, **options):
        """A new session that the agent runs, followed by a client that can approve its calls."""
        client = await self.house.connect(client={"name": "ann"}, can_approve=True)
        wishes = {"agent": self.agent.name, "provider": None, "base_url": None, "secrets": None, "env": self.env}
        return await self.house.create("openai", None, client, **(wishes | options))

    def process(self):
        """The process of the agent that was started last."""
        found = psutil.Process(self.house.daemon.pid).children()
        return max(filter(self._is_agent, found), key=psutil.Process.create_time)

    async def until_stored(self, words):
        """Wait until a file of the agent has these words: it writes what was said some time after it was said."""
        client = await self.house.connect()
        async with asyncio.timeout(WAIT_MS / 1000):
            while not self._is_stored(words.encode()):
                await client.ask("ping")

    def _is_stored(self, words):
        for folder in (".claude", ".hermes"):
            for file in Path(self.env["HOME"], folder).rglob("*"):
                with suppress(OSError):  # a directory, or one that is not there any more
                    if words in file.read_bytes():
                        return True
        return False

    def _is_agent(self, process):
        try:
            return any(self.agent.program.name in word for word in process.cmdline())
        except psutil.Error:  # another child, which is ending
            return False


ORDER = re.compile(r"ORDER (\w+) ([^\s\"\\]+)")


def told(agent):
    """What the model answers, by the last order that it was given; what an agent asks beside its turns has no tools."""

    def answer(request):
        texts = list(map(json.dumps, request.messages))
        orders = [(place, *found) for place, said in enumerate(texts) for found in ORDER.findall(said)]
        if not orders or not request.body.get("tools"):
            return text("ok")
        place, verb, detail = orders[-1]
        match verb:
            case "write" if not any("tool_result" in said or '"tool"' in said for said in texts[place + 1 :]):
                return calls(agent.writing(detail))
            case "write":
                return text("written")
            case "hang":
                return ScriptedReply([TextPart(["hanging "]), Hang()])
            case "recall":
                kept = {what for _, done, what in orders if done == "keep"}
                return text(f"recalled {' '.join(sorted(kept))}")
        return text(f"done {verb} {detail}")

    return answer


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[Claude(), Hermes()], ids=lambda agent: agent.name)
async def bench(request, tmp_path_factory):
    agent = request.param
    needs("chromium", "node")
    if not agent.program.exists():
        pytest.skip(f"{ABSENT}{agent.program.name}: make acp-agents")
    folder = tmp_path_factory.mktemp(agent.name)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer(told(agent)))
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        stack.push_async_callback(browser.close)
        expect.set_options(timeout=WAIT_MS)
        daemon, port = DaemonProcess(folder), free_port()
        daemon.place.home.mkdir()
        command = json.dumps([str(agent.program)])
        (daemon.place.home / "config.toml").write_text(
            f'[websocket]\nlisten = "127.0.0.1:{port}"\n[adapters.{agent.name}]\ncommand = {command}\n'
        )
        stack.enter_context(daemon)
        env = {"PATH": daemon.place.env["PATH"], "HOME": daemon.place.env["HOME"]}
        env |= agent.prepare(Path(env["HOME"]), model)
        house = House(stack, daemon.place, daemon)
        yield Bench(house, World(daemon, model, browser, f"http://127.0.0.1:{port}"), agent, env)


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """The daemon, its agents and the browser outlive a test, and end with the module: the daemon and Playwright see to that."""


async def asked_by(talk, message):
    await talk.ask("prompt", message=message)
    return (await talk.until("approval_requested", "done"))[-1]


def error_of(events):
    return next((event["message"] for event in events if event["type"] == "error"), None)


async def said(talk):
    """The texts of the last message."""
    return "".join((await talk.texts())[-1][1]).strip()


async def test_a_prompt_is_answered(bench):
    talk = await bench.session()
    events = await talk.run("ORDER greet world")
    assert error_of(events) is None
    assert await said(talk) == "done greet world"
    usage = (await talk.ask("get_state"))["usage"]
    assert usage["input"] > 0


async def test_a_second_client_approves(bench):
    path = bench.house.cwd / "approved"
    talk = await bench.session(mode="ask")
    asked = await asked_by(talk, f"ORDER write {path}")
    assert str(path) in asked["preview"]
    assert not path.exists()
    other = await bench.house.follow(talk.id, await bench.house.connect(client={"name": "ben"}, can_approve=True))
    await decide(other, asked)
    await talk.until("done")
    assert path.read_text() == "made\n"
    assert await said(talk) == "written"


async def test_a_denied_call_is_not_made(bench):
    path = bench.house.cwd / "denied"
    talk = await bench.session(mode="ask")
    await decide(talk, await asked_by(talk, f"ORDER write {path}"), "deny")
    await talk.until("done")
    assert not path.exists()


async def test_the_mode_decides_instead_of_a_person(bench):
    made, not_made = bench.house.cwd / "yolo", bench.house.cwd / "read-only"
    await (await bench.session(mode="yolo")).run(f"ORDER write {made}")
    await (await bench.session(mode="read-only")).run(f"ORDER write {not_made}")
    assert (made.exists(), not_made.exists()) == (True, False)


async def test_an_abort_ends_the_turn_and_the_next_one_is_answered(bench):
    talk = await bench.session()
    await talk.ask("prompt", message="ORDER hang now")
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")
    await talk.run("ORDER greet again")
    assert await said(talk) == "done greet again"


async def test_an_abort_ends_the_question(bench):
    path = bench.house.cwd / "aborted"
    talk = await bench.session(mode="ask")
    await asked_by(talk, f"ORDER write {path}")
    await talk.ask("abort")
    await talk.until("done")
    assert not path.exists()


async def test_after_a_crash_the_session_is_taken_up_again(bench):
    talk = await bench.session()
    await talk.run("ORDER keep narwhal")
    await bench.until_stored("done keep narwhal")
    await talk.ask("prompt", message="ORDER hang now")
    await talk.until("text_delta")
    bench.process().kill()
    assert "SIGKILL" in error_of(await talk.until("done"))
    await talk.run("ORDER recall all")
    assert await said(talk) == "recalled narwhal"


async def test_the_fork_remembers_what_was_said_and_goes_its_own_way(bench):
    talk = await bench.session()
    await talk.run("ORDER keep walrus")
    session = (await talk.ask("session.fork"))["session"]
    other = await bench.house.follow(session["id"], talk.client)
    await other.run("ORDER keep otter")
    await other.run("ORDER recall all")
    assert await said(other) == "recalled otter walrus"
    await talk.run("ORDER recall all")
    assert await said(talk) == "recalled walrus"


async def test_its_mode_is_set_and_kept_for_the_next_process(bench):
    talk = await bench.session()
    (mode,) = [one for one in (await talk.ask("session.agent_options"))["options"] if one["category"] == "mode"]
    wanted = next(value["id"] for value in mode["values"] if value["id"] != mode["current"])
    await talk.ask("session.agent_choose", option=mode["id"], value=wanted)
    bench.process().kill()
    await talk.run("ORDER greet world")
    found = {one["id"]: one["current"] for one in (await talk.ask("session.agent_options"))["options"]}
    assert found[mode["id"]] == wanted


async def test_its_slash_commands_are_completed(bench):
    talk = await bench.session()
    await talk.run("ORDER greet world")
    found = (await talk.ask("complete", kind="command", text=""))["found"]
    assert "compact" in {one["text"] for one in found if one["source"] == bench.agent.name}


async def test_a_second_prompt_waits_for_its_turn(bench):
    path = bench.house.cwd / "queued"
    talk = await bench.session(mode="ask")
    asked = await asked_by(talk, f"ORDER write {path}")
    assert not (await talk.ask("prompt", message="ORDER greet later"))["started"]
    await decide(talk, asked)
    await talk.until("done")
    await talk.until("done")
    assert await said(talk) == "done greet later"


async def test_a_killed_daemon_ends_it_and_the_next_one_takes_the_session_up(bench):
    talk = await bench.session()
    await talk.run("ORDER keep otter")
    agent = bench.process()
    bench.house.restart(signal.SIGKILL)
    agent.wait(timeout=30)
    client = await bench.house.connect()
    talk = await bench.house.follow(talk.id, client)
    await talk.ask("session.configure", env=bench.env)
    await talk.run("ORDER recall all")
    assert await said(talk) == "recalled otter"


async def test_the_page_follows_it_and_decides(bench):
    path = bench.house.cwd / "paged"
    talk = await bench.session(mode="ask")
    async with bench.world.page(await bench.world.token("page"), talk.id) as page:
        await page.get_by_label("Prompt").fill(f"ORDER write {path}")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("button", name="Allow once").click(timeout=AGENT_MS)
        await expect(entry(page, "written")).to_be_visible()
    assert path.read_text() == "made\n"
