"""Extensions are reloaded while sessions call them: no call is lost, and nothing of the old processes stays."""

import asyncio
import json
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from zotd.testing.live_daemon import ROOT
from zotd.testing.script import CallPart, calls, text
from zotd.testing.warm import is_fork_server

RELOADS = 10

SESSIONS = 8

BOTH = calls(*[CallPart("steady"), CallPart("reloaded")] * 2)

SOURCE = '''
import asyncio, os
from zotd.sdk import Extension

ext = Extension(NAME)

@ext.tool(name=NAME)
async def call() -> str:
    """Takes 5 ms, so that calls are open whenever a process is replaced."""
    await asyncio.sleep(0.005)
    return str(os.getpid())

ext.run()
'''


class Load:
    """What sessions see of their calls, and a model that asks for them until it is told to stop."""

    def __init__(self):
        self.is_over = False
        self.calls = 0
        self.results = []
        """Of each result: the tool, whether it failed, its text."""
        self.progress = asyncio.Event()

    def answer(self, _):
        return text("enough") if self.is_over else BOTH

    async def follow(self, talk):
        """A run, to its end."""
        await talk.ask("prompt", message="go")
        while True:
            event = await talk.client.event()
            if event["type"] == "tool_call":
                self.calls += 1
            elif event["type"] == "tool_result":
                self.results.append((event["name"], event["is_error"], event["content"][0]["text"]))
                self.progress.set()
            elif event["type"] == "done":
                return

    async def go_on(self):
        """Wait for another result."""
        self.progress.clear()
        async with asyncio.timeout(60):
            await self.progress.wait()


def install(house, name):
    directory = house.place.home / "extensions" / name
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text(json.dumps({"name": name, "exec": sys.executable, "args": ["main.py"]}))
    (directory / "main.py").write_text(SOURCE.replace("NAME", repr(name)))


LOOKING = "look at changed files"


async def census(client, ended):
    """The children, descriptors and tasks of this process, when the processes that were replaced have left.

    Without sockets and unnamed tasks: the model's server, in this process too, has some for each open connection. Without
    the task that looks at files which have changed, too: it ends by itself a moment after the last change.
    """
    children = [child for child in psutil.Process().children() if not is_fork_server(child)]
    serving = {one["pid"] for one in (await client.ask("ext.list"))["extensions"]}
    for child in children:
        if child.pid not in serving:
            await ended(child.pid)
    await client.ask("ping")  # the daemon, in this loop, has heard of their ends too
    looking = [task for task in asyncio.all_tasks() if task.get_name().startswith(("strays of", "packing of"))]
    if looking:  # for what they may have left behind, or the runs before in the checkpoints
        await asyncio.wait(looking, timeout=30)
    tasks = [task.get_name() for task in asyncio.all_tasks()]
    return {
        "processes": sum(not is_fork_server(child) for child in psutil.Process().children()),
        "descriptors": descriptors(),
        "tasks": Counter(name for name in tasks if not name.startswith(("Task-", LOOKING))),
    }


def descriptors():
    """How many of each kind: pipes, pidfds, files."""
    found: Counter[str] = Counter()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of this very listing
            found[str(descriptor.readlink()).partition(":")[0]] += 1
    del found["socket"]
    return found


async def run_all(load, talks, reload_, reloads):
    load.is_over = False
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(load.follow(talk))
        await load.go_on()
        for _ in range(reloads):
            await reload_()
            await load.go_on()
        load.is_over = True


@pytest.mark.timeout(180)  # ten starts of Python beside eight busy sessions
async def test_no_call_is_lost_while_an_extension_is_reloaded_again_and_again(house, model, ended):
    for name in ("steady", "reloaded"):
        install(house, name)
    load = Load()
    server = await model(load.answer)
    env = {**house.place.env, "PYTHONPATH": str(ROOT)}
    talks = [await house.create("openai", server, env=env, ephemeral=True) for _ in range(SESSIONS)]
    client = await house.connect()

    async def reload_():
        answer = await client.ask("ext.reload", cwd=str(house.cwd), name="reloaded")
        assert (answer["ready"], answer["errors"]) == (["reloaded"], [])

    await run_all(load, talks, reload_, reloads=0)  # connections, imports
    before = await census(client, ended)
    first = {by for _, _, by in load.results}
    load.calls, load.results = 0, []
    await run_all(load, talks, reload_, reloads=RELOADS)
    assert [text for _, failed, text in load.results if failed] == []
    assert len(load.results) == load.calls > SESSIONS * RELOADS
    by = {name: {pid for one, _, pid in load.results if one == name} for name in ("steady", "reloaded")}
    assert len(by["steady"]) == 1
    assert by["steady"] < first
    assert len(by["reloaded"]) > RELOADS // 2, "each reload has brought another process"
    assert await census(client, ended) == before
