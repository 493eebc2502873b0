"""What manifests have containers do, done by processes of this machine: their commands, with their environment.

Paths of containers become those of a temporary directory, and addresses those of loopback; everything else is as it is written.
"""

import asyncio
import json
import re
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from zotd import paths
from zotd.testing.wire_client import WireClient

ROOT = Path(__file__).parent.parent.parent

READY_S = 90.0
"""Longest wait for a daemon to be ready, and for a command."""

STOP_S = 30.0
"""Longest wait for the end of a daemon that runs nothing."""


def make_secrets(folder):
    """Run the script that makes the secrets of daemons; return where they are."""
    subprocess.run(["sh", str(ROOT / "packaging/secrets.sh"), str(folder)], check=True, timeout=READY_S)
    return folder


def entrypoint():
    """The program that the image runs."""
    text = (ROOT / "packaging/container/Containerfile").read_text()
    return json.loads(re.findall(r"(?m)^ENTRYPOINT (.*)$", text)[-1])


class Container:
    """A container with this environment; `places` says what stands for its paths and addresses."""

    def __init__(self, folder, env, places, *, programs=""):
        self._folder = folder
        self._places = places
        self._log = folder / "log"
        path = f"{programs}:" if programs else ""
        given = {name: self._here(value) for name, value in env.items()}
        self.env = {
            "PATH": f"{path}{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "ZOT_TEMPLATE": "off",  # its process would outlive the test
            **given,
        }

    async def run(self, command):
        """Run a command to its end; return the exit code and what it prints."""
        process = await asyncio.create_subprocess_exec(
            *map(self._here, command), cwd=self._folder, env=self.env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        try:
            async with asyncio.timeout(READY_S):
                out, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        return process.returncode, out.decode()

    @asynccontextmanager
    async def serving(self, command):
        """Run the main program of the container meanwhile."""
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *map(self._here, command), cwd=self._folder, env=self.env, stdin=DEVNULL, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def ready(self, probe):
        """Run a probe again and again until it succeeds."""
        said = ""
        try:
            async with asyncio.timeout(READY_S):
                while (answer := await self.run(probe))[0] != 0:
                    said = answer[1]
        except TimeoutError as error:
            raise AssertionError(f"{said}{self._log.read_text()}") from error

    def client(self):
        """A client inside of the container."""
        return WireClient.connect(paths.socket_path(self.env))

    def _here(self, text):
        found = "|".join(rf"(?<!\w){re.escape(place)}" for place in sorted(self._places, key=len, reverse=True))
        return re.sub(found, lambda match: self._places[match[0]], text)


async def ended(process):
    """The exit code of a daemon that was told to end."""
    async with asyncio.timeout(STOP_S):
        return await process.wait()


async def work_and_drain(daemons, command, probe, drain):
    """Have three daemons serve, use a session of the first one through the others, and hand it over.

    Returns the exit codes of the drained daemon, and of the last one, which has no other daemon to hand over to and is stopped.
    """
    one, two, three = daemons
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(daemon.serving(command)) for daemon in daemons]
        for daemon in daemons:
            await daemon.ready(probe)
        session = await _session_at(one)
        for other in (two, three):  # through the door of the first one, with its certificate and the key
            await _attach(other, session)
        code, said = await one.run(drain)
        assert code == 0, said
        drained = await ended(processes[0])
        assert (await one.run(probe))[0] != 0
        await _attach(two, session)
        for daemon in (two, three):
            await daemon.ready(probe)
        code, said = await two.run(drain)
        assert code == 0, said
        await _attach(three, session)
        code, said = await three.run(drain)
        assert code != 0
        assert "no other daemon" in said
        processes[2].terminate()
        return drained, await ended(processes[2])


async def _session_at(daemon):
    async with daemon.client() as client:
        made = await client.ask("session.create", cwd=daemon.env["HOME"], provider="ollama", model="m")
        await client.ask("attach", session=made["session"]["id"])
        return made["session"]["id"]


async def _attach(daemon, session):
    """Attach; the daemon that was drained has perhaps not let go of it yet."""
    async with daemon.client() as client, asyncio.timeout(READY_S):
        while not (answer := await client.answer("attach", session=session))["success"]:
            assert answer["code"] in {"conflict", "shutting_down"}, answer


def mounted(source, target):
    """Make what Kubernetes makes of a Secret: links to links, readable by a group."""
    (target / "..1").mkdir(parents=True)
    for file in source.iterdir():
        copy = target / "..1" / file.name
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o440)
    Path(target / "..data").symlink_to("..1")
    for file in source.iterdir():
        Path(target / file.name).symlink_to(f"..data/{file.name}")
