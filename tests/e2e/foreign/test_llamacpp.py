"""llama.cpp's own server with a small model, reached with `--provider llamacpp --base-url …`."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.conftest import House, only
from tests.e2e.foreign.conftest import command
from zotd.testing.live_daemon import ROOT, DaemonProcess, serving

PROGRAM = Path(__file__).with_name("llama_server.py")

MODEL = "smollm2"

REPLY_TOKENS = 24
"""Most of a reply. A small model does not always find an end by itself."""

ENDLESS = 3000
"""Tokens of a reply that is still being written when the test has done what it wants."""

PICTURE = {
    "mime_type": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==",
}


class LlamaServer:
    """llama.cpp's server on one port; it can be killed and started again."""

    def __init__(self, port, *, context=4096, slots=1):
        self._argv = [sys.executable, str(PROGRAM), str(port), "--context", str(context), "--slots", str(slots)]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{port}"

    def start(self):
        """Start it and wait until it serves."""
        self._process = subprocess.Popen(
            self._argv,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        lines = iter(self._process.stdout.readline, b"")
        assert any(line.startswith(b"listening") for line in lines)

    def kill(self):
        """Kill it, and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    async def get(self, path):
        """A document of the server."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}{path}") as answer:
            return await answer.json()


@pytest.fixture
def llama(port):
    """`llama(context=…, slots=…)`: a server that ends with the test."""
    started = []

    def llama(**options):
        server = LlamaServer(port, **options)
        started.append(server)
        server.start()
        return server

    yield llama
    for server in started:
        server.kill()


def configure(home, *, few_shot=False, **extra):
    """What a person with this server and so small a model writes; `extra`: further fields of each request."""
    home.mkdir(mode=0o700, exist_ok=True)
    fields = {"temperature": 0, "max_tokens": REPLY_TOKENS} | extra
    listed = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    (home / "config.toml").write_text(f"[providers.llamacpp]\nextra = {{ {listed} }}\n")
    row = {"id": MODEL, "provider": "llamacpp", "few_shot": few_shot}
    (home / "models.json").write_text(json.dumps({"models": [row]}))


async def begin(house, server, client=None, **options):
    """A session on the server, with a prompt of a few words."""
    options = {"system_prompt": "You are brief.", "no_tools": True, "secrets": None} | options
    return await house.create("llamacpp", None, client, base_url=server.url, model=MODEL, **options)


@pytest.fixture
async def home(tmp_path, monkeypatch):
    """`await home(extra)`: a daemon in this loop whose requests have these fields besides."""
    async with AsyncExitStack() as stack:

        async def home(**extra):
            configure(tmp_path / "zot", **extra)
            place = await stack.enter_async_context(serving(tmp_path))
            monkeypatch.setenv("HOME", place.env["HOME"])
            return House(stack, place)

        yield home


def said(events):
    """The text of the deltas."""
    return "".join(event["delta"] for event in only(events, "text_delta"))


async def until_deltas(talk, count=3):
    """Events up to the delta with that number: the reply is under way."""
    events = []
    for _ in range(count):
        events += await talk.until("text_delta", "error")
    assert not only(events, "error"), events
    return events


async def idle(server):
    """Wait until no slot of the server works; it looks after every token whether its client is still there."""
    async with asyncio.timeout(60):
        while any(slot["is_processing"] for slot in await server.get("/slots")):
            pass


async def test_an_answer_streams_and_its_tokens_are_counted_at_no_cost(home, llama):
    server = llama()
    talk = await begin(await home(), server)
    events = await talk.run("Say hello.")
    assert len(only(events, "text_delta")) > 1
    (message,) = only(events, "assistant_message")
    assert message["content"] == [{"type": "text", "text": said(events)}]
    (usage,) = only(events, "usage")
    assert 0 < usage["output"] <= REPLY_TOKENS
    assert usage["input"] + usage["cache_read"] > 10
    assert usage["cost_usd"] == 0


async def test_the_second_prompt_finds_the_first_one_in_the_cache_of_the_server(home, llama):
    talk = await begin(await home(), llama())
    (first,) = only(await talk.run("Say hello."), "usage")
    (second,) = only(await talk.run("Again."), "usage")
    assert second["cache_read"] >= first["input"] + first["cache_read"]
    assert second["cache_read"] + second["input"] > first["input"] + first["output"]


async def test_the_model_calls_a_tool_and_reads_its_result(home, llama):
    server = llama()
    house = await home(few_shot=True, max_tokens=48)
    (house.cwd / "secret.txt").write_text("walnut\n")
    talk = await begin(house, server, no_tools=False, tools=["read"])
    events = await talk.run("Read the file secret.txt")
    assert [(call["name"], call["args"]) for call in only(events, "tool_call")] == [("read", {"path": "secret.txt"})]
    assert "walnut" in said(events)


async def test_a_context_in_which_the_tools_do_not_fit_is_told(home, llama):
    talk = await begin(await home(), llama(context=2048))
    (notice,) = only(await talk.run("Say hello."), "notice")
    assert "a context of 2,048 tokens" in notice["text"]
    assert "llama-server --ctx-size" in notice["text"]


async def test_a_prompt_longer_than_the_context_ends_in_a_sentence_that_says_so(home, llama):
    talk = await begin(await home(), llama(context=512))
    events = await talk.run("word " * 800)
    (error,) = only(events, "error")
    assert "exceeds the available context size (512 tokens)" in error["message"]
    assert not only(events, "retry")


async def test_an_abort_frees_the_slot_of_the_server(home, llama):
    server = llama()
    talk = await begin(await home(max_tokens=ENDLESS, ignore_eos=True), server)
    await talk.ask("prompt", message="Count.")
    await until_deltas(talk)
    await talk.ask("abort")
    await talk.until("done")
    await idle(server)
    (slot,) = await server.get("/slots")
    assert slot["next_token"][0]["n_decoded"] < ENDLESS


async def test_two_sessions_write_at_once_on_two_slots(home, llama):
    server = llama(slots=2)
    house = await home(max_tokens=ENDLESS, ignore_eos=True)
    talks = [await begin(house, server) for _ in range(2)]
    for talk in talks:
        await talk.ask("prompt", message="Count.")
    for talk in talks:
        await until_deltas(talk)
    assert [slot["is_processing"] for slot in await server.get("/slots")] == [True, True]
    for talk in talks:
        await talk.ask("abort")
        await talk.until("done")


async def test_a_server_that_dies_in_mid_stream_and_comes_back_is_asked_again(home, llama):
    server = llama()
    talk = await begin(await home(max_tokens=400, ignore_eos=True), server)
    await talk.ask("prompt", message="Count.")
    await until_deltas(talk)
    server.kill()
    await talk.until("retry")
    server.start()
    await talk.until("text_delta")
    await talk.ask("abort")
    await talk.until("done")


async def test_an_image_is_left_out_when_the_server_refuses_it_and_the_user_is_told_once(home, llama):
    talk = await begin(await home(), llama())
    events = await talk.run("What is this?", images=[PICTURE])
    assert said(events)
    assert not only(events, "error")
    assert not only(events, "retry")
    assert [event["text"] for event in only(events, "notice") if "takes no images" in event["text"]] != []
    again = await talk.run("Say hello.")
    assert said(again)
    assert not only(again, "error")
    assert not [event for event in only(again, "notice") if "images" in event["text"]]


async def test_a_killed_daemon_goes_on_where_it_was(tmp_path, llama):
    server = llama()
    configure(tmp_path / "zot", max_tokens=ENDLESS, ignore_eos=True)
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path))
        house = House(stack, daemon.place, daemon)
        talk = await begin(house, server)
        await talk.ask("prompt", message="Count.")
        await until_deltas(talk)
        configure(tmp_path / "zot")
        house.restart(signal.SIGKILL)
        talk = await house.follow(talk.id)
        assert (await talk.ask("run_command", name="continue"))["started"] is True
        events = await talk.until("done")
        assert said(events)
        assert not only(events, "error")


def test_zot_p_prints_the_answer_of_a_server_without_a_key(tmp_path, llama):
    server = llama()
    configure(tmp_path / "zot")
    with DaemonProcess(tmp_path) as daemon:
        where = ["--provider", "llamacpp", "--base-url", server.url, "--model", MODEL]
        ran = command(
            daemon.place, "zotd.cli", "-p", *where, "--no-tools", "--system-prompt", "You are brief.", "Say hello."
        )
    assert (ran.returncode, bool(ran.stdout.strip())) == (0, True), ran.stderr


def test_models_check_says_what_works(tmp_path, llama):
    server = llama()
    configure(tmp_path / "zot")
    config = tmp_path / "zot" / "config.toml"
    config.write_text(config.read_text() + f'base_url = "{server.url}/v1"\n')
    with DaemonProcess(tmp_path) as daemon:
        only_these = ["--only", "stream,tools,images,reasoning", "--json"]
        ran = command(daemon.place, "zotctl", "models", "check", f"llamacpp/{MODEL}", *only_these)
    (model,) = json.loads(ran.stdout)["models"]
    outcomes = {probe["probe"]: probe["outcome"] for probe in model["probes"]}
    assert outcomes == {"stream": "yes", "tools": "no", "images": "no", "reasoning": "off"}, ran.stdout
