"""A home with extensions in it: the examples, and small ones made for a test."""

import json
import os
import shutil
import sys
import textwrap
from pathlib import Path

from tests.needs import needs
from zotd.testing.live_daemon import ROOT
from zotd.testing.script import CallPart, calls, text

EXAMPLES = ROOT / "examples" / "extensions"

WEATHER = calls(CallPart("weather", {"city": "Berlin"})), text("It is 16 °C and foggy.")
"""What a model says that wants to know the weather."""


PROGRAMS = {"hello": ["jq"], "clock": ["node"]}
"""What an example runs besides Python and a shell."""


class Shop:
    """A home with extensions in it."""

    def __init__(self, house):
        self.house = house
        self.env = {
            **house.place.env,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), house.place.env["PATH"]]),
            "PYTHONPATH": str(ROOT),
        }

    @property
    def installed(self):
        return self.house.place.home / "extensions"

    def install(self, name):
        """One of the examples; skips the test where a program that it runs is missing."""
        needs(*PROGRAMS.get(name, ()))
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(EXAMPLES / name, self.installed / name, ignore=ignored)

    def write(self, name, body, *, into=None, **fields):
        """A small one, with the SDK; `ext` is there."""
        directory = (into or self.installed) / name
        directory.mkdir(parents=True, exist_ok=True)
        manifest = {"name": name, "exec": "python3", "args": ["main.py"], **fields}
        (directory / "extension.json").write_text(json.dumps(manifest))
        head = f"from zotd.sdk import *\next = Extension({name!r})\n"
        (directory / "main.py").write_text(head + textwrap.dedent(body) + "\next.run()\n")
        return directory

    async def open(self, server, vendor="openai", **options):
        return await self.house.create(vendor, server, env=self.env, **options)


async def until_state(client, name, state):
    """Wait until a client that follows the topic hears of this state."""
    event: dict[str, object] = {}
    while (event.get("extension"), event.get("state")) != (name, state):
        event = (await client.until("ext_state"))[-1]
