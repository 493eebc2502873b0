import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from zotd.core.ports import ToolContext
from zotd.exthost.discovery import Discovered, discover
from zotd.exthost.host import ExtensionTimeouts, Host, Wish
from zotd.exthost.requests import ToolRequest
from zotd.exthost.surroundings import About, Surroundings
from zotd.testing.misbehaviours import PROGRAM
from zotd.wire import ext

ENV = {"PATH": os.environ["PATH"]}

ABOUT = About("s_1", "/project")


@dataclass
class Heard:
    """A host's listener; keeps everything, and waits for some of it."""

    wishes: list[tuple[str, str | None, Wish]] = field(default_factory=list)
    activated: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    states: list[tuple[str, str, str]] = field(default_factory=list)
    requests: list[ToolRequest] = field(default_factory=list)
    others: list[tuple[str, ext.FromExtension]] = field(default_factory=list)
    complaints: list[tuple[str, str]] = field(default_factory=list)
    changes: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wish(self, extension, session, wish):
        if len(self.wishes) < 1000:
            self.wishes.append((extension, session, wish))
        self._changed.set()

    def activate(self, session, tools):
        self.activated.append((session, tools))
        self._changed.set()

    def state_changed(self, extension, state, reason):
        self.states.append((extension, str(state), reason))
        self._changed.set()

    def contributions_changed(self):
        self.changes += 1
        self._changed.set()

    def complained(self, extension, sentence):
        self.complaints.append((extension, sentence))
        self._changed.set()

    def call_tool(self, request):
        self.requests.append(request)
        self._changed.set()

    def other(self, extension, frame):
        self.others.append((extension, frame))
        self._changed.set()

    async def until(self, holds):
        async with asyncio.timeout(30):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


def tell(host, event):
    """What a session does with its events."""
    for extension in host.extensions:
        if extension.hears(event.event):
            extension.send(event)


class Workshop:
    """A home with extensions in it, and hosts for them."""

    def __init__(self, path: Path):
        self.home = path / "home"
        self.cwd = path / "project"
        self.cwd.mkdir()
        self.heard = Heard()

    def extension(self, name: str, argv: Sequence[str], **fields: object) -> Path:
        """Install one; `fields` go into its manifest."""
        directory = self.home / "extensions" / name
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": name, "exec": argv[0], "args": list(argv[1:]), **fields}
        (directory / "extension.json").write_text(json.dumps(manifest))
        return directory

    def acting(self, name: str, *behaviour: str, **fields: object) -> Path:
        """Install one that behaves as `zotd.testing.hostile` does; by default well."""
        return self.extension(name, [sys.executable, "-I", "-S", PROGRAM, *(behaviour or ("good", name))], **fields)

    def script(self, name: str, source: str, **fields: object) -> Path:
        """Install a Python program; it begins with the helpers of `zotd.testing.hostile`."""
        directory = self.extension(name, [sys.executable, "-I", "./main.py"], **fields)
        head = f"import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r}); sys.argv[1:] = [{name!r}]\n"
        (directory / "main.py").write_text(head + "from hostile import *\n" + source)
        manifest = {"name": name, "exec": sys.executable, "args": ["-I", "-S", "main.py"], **fields}
        (directory / "extension.json").write_text(json.dumps(manifest))
        return directory

    def find(self) -> Discovered:
        """What there is."""
        return discover(explicit=(), cwd=self.cwd, home=self.home, is_trusted=lambda _: True)

    def surroundings(self, env: Mapping[str, str] = ENV, **fields) -> Surroundings:
        """Where extensions live."""
        return Surroundings(str(self.cwd), self.home, env, version="1.2.3", **fields)

    @asynccontextmanager
    async def host(
        self,
        *,
        wait: bool = True,
        env: Mapping[str, str] = ENV,
        limits: ExtensionTimeouts | None = None,
        find: Callable[[], Discovered] | None = None,
        **fields,
    ):
        """A host that is started, and stopped at the end."""
        host = Host(
            discover=find or self.find,
            surroundings=self.surroundings(env, **fields),
            listener=self.heard,
            limits=limits,
            reserved_commands=("help", "new"),
        )
        try:
            await host.start()
            if wait:
                assert await host.wait_ready(10) == []
            yield host
        finally:
            await host.stop()


@pytest.fixture
def workshop(tmp_path):
    return Workshop(tmp_path)


def context(call_id: str = "c_1", progress=lambda _: None) -> ToolContext:
    return ToolContext("s_1", call_id, "/project", ENV, "/nowhere", progress)


async def run(host: Host, name: str, **args: object) -> tuple[bool, str]:
    """Call a tool; whether it failed, and its text."""
    tool = next(tool for tool in host.offers.tools() if tool.spec.name == name)
    outcome = await tool.run(args, context())
    return outcome.is_error, "\n".join(getattr(block, "text", "<image>") for block in outcome.content)
