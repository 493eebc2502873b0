"""What a daemon has started stays bound when the daemon is stopped, killed and started again."""

import asyncio
import os
import shlex
import signal
import sys
from contextlib import suppress

import psutil
import pytest

from tests.e2e.shop import Shop
from zotd.testing.script import CallPart, calls, text

ROLE = """
import os, sys, time
from pathlib import Path
from zotd import paths
from zotd.client.blocking import connect
from zotd.client.errors import ClientError
said, go = map(Path, sys.argv[1:])
(said.parent / "waits").write_text(str(os.getpid()))
while not go.exists():
    time.sleep(0.01)
try:
    with connect(paths.socket_path(os.environ)) as daemon:
        word = daemon.call("hello", role="admin")["role"]
except ClientError as error:
    word = str(error)
said.with_suffix(".new").write_text(word)
said.with_suffix(".new").rename(said)
"""
"""Waits for a file, then asks for the role of an administrator and writes down what it is told."""

AWAY = {
    "in the background": "{} >/dev/null 2>&1 &",
    "in a session of its own": "setsid {} >/dev/null 2>&1 &",
    "an orphan": "(setsid {} >/dev/null 2>&1 &)",
    "an orphan without its environment": "(env -i {env} setsid {} >/dev/null 2>&1 &)",
}

ENV = "PATH=$PATH ZOT_HOME=$ZOT_HOME PYTHONPATH=$PYTHONPATH"


class Left:
    """A program that a command of the model has left behind, and that comes back when it is told to."""

    def __init__(self, folder):
        self._said, self._go, self._waits = folder / "said", folder / "go", folder / "waits"

    def command(self, way):
        program = shlex.join([sys.executable, "-c", ROLE, str(self._said), str(self._go)])
        wait = f"while [ ! -s {self._waits} ]; do sleep 0.05; done"
        return f"{way.replace('{env}', ENV).replace('{}', program)}\n{wait}"

    @property
    def pid(self):
        return int(self._waits.read_text())

    async def has_begun(self, client):
        """Wait until it waits."""
        async with asyncio.timeout(60):
            while not self._waits.exists() or not self._waits.read_text():
                await client.ask("ping")

    async def word(self, client):
        """What it is told when it comes back."""
        self._go.touch()
        async with asyncio.timeout(60):
            while not self._said.exists():
                await client.ask("ping")
        return self._said.read_text()

    def end(self):
        if self._waits.exists() and not self._said.exists():
            os.kill(int(self._waits.read_text()), signal.SIGKILL)


@pytest.fixture
def left(tmp_path):
    found = Left(tmp_path)
    yield found
    found.end()


def bash(command):
    return calls(CallPart("bash", {"command": command}))


@pytest.mark.parametrize("way", AWAY)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_what_a_command_left_behind_decides_nothing_after_a_restart(process, model, left, way, number):
    talk = await Shop(process).open(await model(bash(left.command(AWAY[way])), text("Left.")))
    await talk.run()
    if number == signal.SIGKILL:
        await noted(process, talk.client)
    process.restart(number)
    person = await process.connect(role="admin")
    assert "rule: descendants never decide" in await left.word(person)
    process.restart(signal.SIGTERM)
    assert (await (await process.connect()).ask("hello", role="admin"))["role"] == "admin"


@pytest.mark.parametrize("way", ["{}", "env -i {env} {}", "env -i {env} setsid --wait {}"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_kept_job_decides_nothing_after_a_restart(process, model, left, way, number):
    command = left.command(way).rsplit("\n", 1)[0]
    job = CallPart("bash", {"command": command, "background": True, "keep": True})
    talk = await Shop(process).open(await model(calls(job), text("It runs.")))
    await talk.run()
    await left.has_begun(talk.client)
    process.restart(number)
    person = await process.connect(role="admin")
    assert "rule: descendants never decide" in await left.word(person)


async def noted(house, client):
    """Wait until the daemon has looked for what a command left behind."""
    file = house.place.home / "run" / "descendants"
    async with asyncio.timeout(60):
        while file.read_text() == "[]":
            await client.ask("ping")


KILLED = {
    "zotctl": "kill -9 {pid}; zotctl trust list",
    "zotctl in a session of its own": "kill -9 {pid}; setsid --wait zotctl trust list",
    "zotctl without its environment": "kill -9 {pid}; env -i {env} zotctl trust list",
    "started first": "kill -9 {pid}; zotctl start; zotctl trust list",
    "started without its environment": "kill -9 {pid}; env -i {env} python3 -m zotd & sleep 1; zotctl trust list",
    "in another session": "setsid sh -c 'kill -9 {pid}; zotctl trust list'",
}


@pytest.mark.parametrize("way", KILLED)
async def test_a_command_that_kills_the_daemon_and_starts_it_decides_nothing(process, model, tmp_path, way, ended):
    told, pid = tmp_path / "told", tmp_path / "pid"
    attack = KILLED[way].replace("{env}", ENV).replace("{pid}", str(process.daemon.pid))
    # In a session of its own, so that the next daemon does not end it as it ends the command.
    inner = f"echo $$ > {pid}; ({attack}) > {told} 2>&1"
    talk = await Shop(process).open(await model(bash(f"setsid sh -c {shlex.quote(inner)}"), text("Never.")))
    await talk.ask("prompt", message="go")
    await talk.client.rest()
    process.daemon.wait()
    await ended(int(pid.read_text()))
    await shut_down(process, ended)
    said = told.read_text()
    assert "rule: descendants never decide" in said


async def test_a_job_of_a_command_that_ran_when_the_daemon_was_killed_decides_nothing(process, model, left):
    """It has neither the mark in its environment nor a parent: what is left of its origin is the command's session."""
    # In a group of its own, so that it does not end with the command.
    job = left.command("set -m; env -i {env} {} >/dev/null 2>&1 &")
    talk = await Shop(process).open(await model(bash(f"{job}\nsleep 600"), text("Never.")))
    await talk.ask("prompt", message="go")
    await left.has_begun(talk.client)
    command = psutil.Process(left.pid).parent()
    assert command is not None
    process.restart(signal.SIGKILL)
    person = await process.connect(role="admin")
    with suppress(psutil.NoSuchProcess):  # the daemon may have ended it
        command.kill()
        async with asyncio.timeout(60):
            while command.status() != psutil.STATUS_ZOMBIE:
                await person.ask("ping")
    assert "rule: descendants never decide" in await left.word(person)


async def shut_down(house, ended):
    """End the daemon that the attack may have started."""
    try:
        person = await house.connect(role="admin")
    except OSError:
        return
    pid = (await person.ask("daemon.status"))["pid"]
    await person.ask("daemon.shutdown")
    await ended(pid)


async def test_a_person_comes_back_as_an_administrator_after_a_kill(process, model):
    talk = await Shop(process).open(await model(text("Hi.")))
    await talk.run()
    process.restart(signal.SIGKILL)
    assert (await (await process.connect()).ask("hello", role="admin"))["role"] == "admin"
