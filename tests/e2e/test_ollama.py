"""A session on Ollama, from the command line: every request asks for the same context window, in which the tools fit."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House, only
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess, place
from zotd.testing.model_server import ModelServer
from zotd.testing.ollama_dialect import OllamaModel, OllamaModels
from zotd.testing.script import CallPart, ScriptedReply, TextPart, ThinkingPart, calls, text
from zotd.wire.content import Tokens


@pytest.fixture
async def begin(tmp_path):
    """`await begin(answers, model)`: a daemon whose Ollama has this model, and the server."""
    async with AsyncExitStack() as stack:

        async def begin(answers, model):
            server = await stack.enter_async_context(ModelServer(answers, ollama=OllamaModels({"qwen3": model})))
            home = place(tmp_path).home
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text(f'[providers.ollama]\nbase_url = "{server.url}"\n')
            daemon = stack.enter_context(DaemonProcess(tmp_path))
            return House(stack, daemon.place, daemon), server

        yield begin


async def zot(house, *arguments):
    """What `zot` prints with these arguments, on both streams."""
    process = await asyncio.create_subprocess_exec(
        *warm.command("zotd.cli", *arguments),
        cwd=house.cwd,
        env=house.place.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err
    return out.decode(), err.decode()


def sizes(server):
    return [received.body["options"]["num_ctx"] for received in server.requests]


async def test_the_command_line_asks_for_the_same_size_also_after_a_restart_of_the_daemon(begin):
    look = ScriptedReply([ThinkingPart(["Hm."]), TextPart(["I look."]), CallPart("read", {"path": "a.txt"})])
    house, server = await begin([look, text("A walrus."), text("Still one.")], OllamaModel())
    (house.cwd / "a.txt").write_text("walrus\n")
    flags = ("--provider", "ollama", "--model", "qwen3", "--reasoning", "high")
    out, err = await zot(house, "-p", "what is in a.txt?", *flags)
    assert "A walrus." in out
    assert "context" not in err
    house.restart(9)
    assert "Still one." in (await zot(house, "-p", "and now?", *flags))[0]
    first, second, third = server.requests
    assert {received.path for received in server.requests} == {"/api/chat"}
    assert sizes(server) == [32_768] * 3
    assert server.ollama.loads == [("qwen3:latest", 32_768)]
    assert {tool["function"]["name"] for tool in first.body["tools"]} >= {"read", "bash"}
    assistant, result = second.messages[-2:]
    assert (assistant["thinking"], assistant["content"]) == ("Hm.", "I look.")
    assert (result["tool_name"], result["content"]) == ("read", "walrus\n")
    assert third.body["think"] == "high"


async def test_a_conversation_is_summarised_before_it_is_longer_than_what_is_asked_for(begin):
    full = ScriptedReply([TextPart(["Long."])], usage=Tokens(input=18_000, output=10))
    answers = [calls(CallPart("bash", {"command": "true"})), full, text("A summary."), text("Go on.")]
    house, server = await begin(answers, OllamaModel(context_length=20_000))
    talk = await house.create("ollama", None, model="qwen3", secrets=None)
    assert not only(await talk.run(message="first"), "compact_done")
    shown = await talk.run(message="second")
    assert only(shown, "compact_done")
    assert "Go on." in json.dumps(only(shown, "assistant_message"))
    assert sizes(server) == [20_000] * 4
    assert server.ollama.loads == [("qwen3:latest", 20_000)]


async def test_a_small_model_is_told_on_the_command_line(begin):
    house, _ = await begin([text("Hi.")], OllamaModel(context_length=8192))
    _, err = await zot(house, "-p", "hi", "--provider", "ollama", "--model", "qwen3")
    assert "qwen3 on Ollama has a context of 8,192 tokens at most, in which the tools do not fit" in err
