"""A trusted repository that changes while sessions are open, by a real `git pull`: what was granted is what runs."""

import asyncio
import json
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from tests.e2e.shop import Shop, until_state
from zotd.testing import warm
from zotd.testing.script import CallPart, calls, text

LOCAL = '''
@ext.tool
def local() -> str:
    """Local."""
    return "granted"

@ext.tool
def fall() -> str:
    """Falls."""
    import os
    os._exit(3)
'''


class Repository:
    """A repository, and the user's clone of it, which is the working directory."""

    def __init__(self, shop, folder):
        self.shop = shop
        self.origin = folder / "origin"
        self.clone = shop.house.cwd
        self.ran = folder / "ran"
        self.ran.mkdir()
        self.git("init", "-q", "-b", "main", str(self.origin), cwd=folder)

    def git(self, *words, cwd):
        name = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *name, *words], cwd=cwd, check=True, capture_output=True)

    def write(self, path, content):
        file = self.origin / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def tool(self, name, answer):
        """A tool whose file leaves a trace when it is run."""
        trace = f"from pathlib import Path\nPath({str(self.ran)!r}, {name + '-' + answer!r}).touch()\n"
        code = f'async def run() -> str:\n    """{name}."""\n    return {answer!r}\n'
        self.write(f".zot/extensions/tools/{name}.py", trace + code)

    def server(self, name):
        """An MCP server that leaves a trace when it is started, and does nothing else."""
        command = f"import pathlib; pathlib.Path({str(self.ran)!r}, {name!r}).touch()"
        self.write(
            ".mcp.json", json.dumps({"mcpServers": {name: {"command": sys.executable, "args": ["-c", command]}}})
        )

    def commit(self):
        self.git("add", "-A", cwd=self.origin)
        self.git("commit", "-q", "-m", "change", cwd=self.origin)

    def pull(self):
        """The first time the clone is made."""
        if (self.clone / ".git").exists():
            self.git("pull", "-q", "--ff-only", cwd=self.clone)
        else:
            self.git("clone", "-q", str(self.origin), str(self.clone), cwd=self.origin)

    def traces(self):
        return sorted(path.name for path in self.ran.iterdir())


@pytest.fixture
def repository(process, tmp_path):
    """Trusted, with an extension and a tool in one file."""
    shop = Shop(process)
    found = Repository(shop, tmp_path)
    shop.write("local", LOCAL, into=found.origin / ".zot" / "extensions")
    found.tool("count", "one")
    found.commit()
    shutil.rmtree(found.clone)
    found.pull()
    return found


async def watcher(house):
    client = await house.connect(role="admin")
    await client.ask("subscribe", topics=["trust", "extensions"])
    return client


async def trusted(repository):
    """Two clients that follow what happens, after the grant."""
    clients = [await watcher(repository.shop.house) for _ in range(2)]
    await clients[0].ask("trust.grant", path=str(repository.clone))
    return clients


async def asked(*clients):
    """What each is asked about next."""
    return [(await client.until("trust_required"))[-1]["items"] for client in clients]


async def ready(client, *names):
    """Wait until a client that follows the topic has heard of each of these that it is ready."""
    left = set(names)
    while left:
        event = (await client.until("ext_state"))[-1]
        left -= {event["extension"]} if event["state"] == "ready" else set()


def results_of(look, events):
    """The texts of a run's tool results, by tool."""
    return {result["name"]: result["content"][0]["text"] for result in look.only(events, "tool_result")}


async def test_what_a_pull_brings_waits_for_trust_in_open_sessions_and_after_a_restart(repository, model, look):
    house, shop = repository.shop.house, repository.shop
    used = calls(CallPart("count"), CallPart("local"), CallPart("deploy"))
    server = await model(used, text("done"), used, text("done"), used, text("done"), used, text("done"))
    clients = await trusted(repository)
    talk = await shop.open(server)
    await ready(clients[1], f"py-{repository.clone.name}", "local")
    first = results_of(look, await talk.run())
    assert (first["count"], first["local"]) == ("one", "granted")
    repository.tool("count", "two")
    repository.tool("deploy", "new")
    repository.server("fresh")
    repository.commit()
    repository.pull()
    changed = [".mcp.json", ".zot/extensions/tools/count.py", ".zot/extensions/tools/deploy.py"]
    assert await asked(*clients) == [changed] * 2

    now = results_of(look, await talk.run())
    assert (now["count"], now["local"]) == ("one", "granted"), "what was granted goes on"
    assert ".zot/extensions/tools/deploy.py" in now["deploy"]
    assert f"zotctl trust grant {repository.clone}" in now["deploy"]
    reloaded = await clients[0].ask("ext.reload", session=talk.id)
    assert reloaded["stopped"] == []
    assert repository.traces() == ["count-one"]

    async with restarted(house):
        talk = await house.follow(talk.id, env=shop.env)
        await talk.ask("session.configure", secrets={"api_key": "sk-scripted-key"})
        clients = [await watcher(house) for _ in range(2)]
        events = await talk.run()
        assert await asked(*clients) == [changed] * 2
        assert all("zotctl trust grant" in result for result in results_of(look, events).values()), (
            "nothing of it is started"
        )
        assert repository.traces() == ["count-one"]

        await clients[0].ask("trust.grant", path=str(repository.clone))
        await ready(clients[0], f"py-{repository.clone.name}", "local")
        assert results_of(look, await talk.run()) == {
            "count": "two",
            "local": "granted",
            "deploy": "new",
        }


@asynccontextmanager
async def restarted(house):
    """While entered, another daemon serves: `zotctl restart` has started it."""
    await zotctl(house, "restart")
    try:
        yield
    finally:
        await zotctl(house, "stop")


async def zotctl(house, *words):
    command = warm.command("zotctl", *words)
    await asyncio.to_thread(subprocess.run, command, env=house.place.env, check=True, capture_output=True, timeout=60)


async def test_a_changed_extension_is_not_started_again_when_it_crashes(repository, model, look):
    server = await model(calls(CallPart("fall")), text("done"))
    clients = await trusted(repository)
    talk = await repository.shop.open(server)
    await until_state(clients[1], "local", "ready")
    repository.shop.write(
        "local", f"open({str(repository.ran / 'local')!r}, 'w')", into=repository.origin / ".zot" / "extensions"
    )
    repository.commit()
    repository.pull()
    assert await asked(*clients) == [[".zot/extensions/local/main.py"]] * 2
    await talk.run()
    state: dict[str, str] = {}
    while state.get("state") != "parked" and "changed since it was trusted" not in state.get("reason", ""):
        state = (await clients[0].until("ext_state"))[-1]
    assert repository.traces() == ["count-one"]


async def test_a_changed_helper_of_a_module_is_not_run(repository, model, look):
    repository.write(".zot/extensions/tools/_helper.py", "WORD = 'granted'\n")
    importing = 'async def run() -> str:\n    "Late."\n    import _helper\n    return _helper.WORD\n'
    repository.write(".zot/extensions/tools/late.py", importing)
    repository.commit()
    repository.pull()
    server = await model(calls(CallPart("late")), text("done"))
    clients = await trusted(repository)
    talk = await repository.shop.open(server)
    await until_state(clients[1], f"py-{repository.clone.name}", "ready")
    repository.write(".zot/extensions/tools/_helper.py", f"open({str(repository.ran / 'helper')!r}, 'w')\nWORD = ''\n")
    repository.commit()
    repository.pull()
    await asked(*clients)
    assert "zotctl trust grant" in results_of(look, await talk.run())["late"]
    assert "helper" not in repository.traces()


async def test_code_that_is_as_it_was_again_is_used_again(repository, model):
    server = await model(text("hi"))
    clients = await trusted(repository)
    talk = await repository.shop.open(server)
    await until_state(clients[1], "local", "ready")
    repository.tool("deploy", "new")
    repository.commit()
    repository.pull()
    await asked(*clients)
    repository.git("reset", "-q", "--hard", "HEAD~1", cwd=repository.clone)
    await talk.until("ext_notify")
    found = await clients[0].ask("trust.list", path=str(repository.clone))
    assert found["workspaces"][0]["state"] == "trusted"


@pytest.mark.parametrize("python", [".venv/bin/python", "./.venv/bin/python"])
async def test_the_interpreter_of_an_untrusted_repository_never_runs(process, tmp_path, model, look, python):
    """It is part of what is trusted: named by the user's configuration, and brought along by the repository."""
    process.daemon.end()
    shop = Shop(process)
    tools = shop.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "own.py").write_text('async def run() -> str:\n    "Own."\n    return "own"\n')
    (process.place.home / "config.toml").write_text(f'[ext]\npython = "{python}"\n')
    process.daemon.start()
    ran = tmp_path / "ran"
    interpreter = process.cwd / ".venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text(f'#!/bin/sh\ntouch {ran}\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o755)
    server = await model(calls(CallPart("own")), text("done"), calls(CallPart("own")), text("done"))
    client = await watcher(process)
    talk = await shop.open(server)
    assert await asked(client) == [[".venv/bin/python"]]
    assert results_of(look, await talk.run()) == {"own": "own"}, "by zot's own interpreter"
    assert not ran.exists()
    await client.ask("trust.grant", path=str(process.cwd))
    await ready(client, f"py-{process.cwd.name}")
    assert results_of(look, await talk.run()) == {"own": "own"}
    assert ran.exists()
    interpreter.write_text(f"#!/bin/sh\nrm {ran}\n")
    assert await asked(client) == [[".venv/bin/python"]]
    assert (await client.ask("ext.reload", cwd=str(process.cwd)))["stopped"] == []
    assert ran.exists()
