"""A scripted model, and `zot rpc` as a process."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from functools import partial

import pytest

from zotd.testing import warm
from zotd.testing.live_daemon import place as place_in
from zotd.testing.model_server import ModelServer

WAIT_S = 30.0
"""Timeout for a line, or for the end of a process, in seconds."""


@pytest.fixture(params=["anthropic", "openai"])
def vendor(request):
    """The SDKs of both vendors, one after the other."""
    return request.param


@pytest.fixture
async def model():
    """`await model(answer, ...)`: a scripted model that is served until the end of the test."""
    async with AsyncExitStack() as stack:

        async def model(*answers):
            return await stack.enter_async_context(ModelServer(answers))

        yield model


@pytest.fixture
def place(tmp_path):
    """A home and a working directory."""
    return place_in(tmp_path)


def options(vendor, server, place):
    url = server.url if vendor == "anthropic" else server.openai_url
    return {"cwd": str(place.cwd), "provider": vendor, "base_url": url, "api_key": "sk-scripted-key"}


@pytest.fixture
def opened(place):
    """`opened(vendor, server)`: options and environment of a runtime."""
    return lambda vendor, server, **more: {"options": options(vendor, server, place) | more, "env": place.env}


class Rpc:
    """A running `zot rpc`."""

    def __init__(self, process):
        self.process = process
        self.frames = []

    def write(self, data):
        self.process.stdin.write(data)

    def send(self, command, **fields):
        self.write(json.dumps({"type": command, **fields}).encode() + b"\n")

    async def frame(self):
        async with asyncio.timeout(WAIT_S):
            line = await self.process.stdout.readline()
        assert line.endswith(b"\n"), line
        self.frames.append(json.loads(line))
        return self.frames[-1]

    async def until(self, kind):
        found = [await self.frame()]
        while found[-1]["type"] != kind:
            found.append(await self.frame())
        return found

    async def end(self):
        """Close standard input; return the exit code, the unread output, and standard error."""
        self.process.stdin.close()
        return await self.ended()

    async def ended(self):
        async with asyncio.timeout(WAIT_S):
            out = await self.process.stdout.read()
            err = await self.process.stderr.read()
            code = await self.process.wait()
        return code, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def rpc(start_rpc):
    """`await rpc(vendor, server, *flags, **env)`: a running `zot rpc`."""
    return partial(start_rpc, warm.command("zotd.cli", "rpc"))


@pytest.fixture
def rpc_child(start_rpc):
    """The same as a child of this process, so that a test finds the children of `zot rpc`."""
    return partial(start_rpc, [sys.executable, "-m", "zotd.cli", "rpc"])


@pytest.fixture
async def start_rpc(place):
    started = []

    async def start(program, vendor, server, *flags, **env):
        given = options(vendor, server, place) if server else {"cwd": str(place.cwd), "provider": vendor}
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
        process = await asyncio.create_subprocess_exec(
            *(*program, *arguments, *flags),
            env={**place.env, **env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=32 * 1024 * 1024,
        )
        started.append(process)
        return Rpc(process)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        # The program ends a little after its client of the template process: its pipes end with it.
        await process.stdout.read()
        await process.stderr.read()
        await process.wait()
