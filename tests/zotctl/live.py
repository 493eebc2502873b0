"""Real command lines against the real daemon, with extensions and a scripted model."""

import json
import os
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

from zotd.client.blocking import connect
from zotd.client.fields import child, text
from zotd.testing import warm

BIN = str(Path(sys.executable).parent)

ECHO = """
import sys

@ext.tool
def shout(text: str) -> str:
    "Says it loudly."
    return text.upper()

@ext.command("shout")
def shout_command(args):
    ext.log("shouting " + args)
    return Display(args.upper())

@ext.command("ask")
def ask(args):
    return Prompt(args)

@ext.command("draft")
def draft(args):
    return Insert(args)
"""
"""An extension with a tool, and commands of three kinds."""


class Live:
    """A home with a daemon, and a shell whose commands reach it."""

    def __init__(self, shell, daemon, stack: ExitStack):
        place = daemon.place
        self.daemon = daemon
        self.shell = shell
        self.home = place.home
        self.cwd = place.cwd
        self.zotctl = shell.zotctl
        self.zot = shell.zot
        self.socket = place.socket
        self._stack = stack
        shell.env = {**place.env, "PATH": os.pathsep.join([BIN, os.environ["PATH"]]), "TERM": "xterm"}

    @property
    def installed(self):
        return self.home / "extensions"

    @property
    def project(self):
        return self.cwd / ".zot" / "extensions"

    def write(self, name, body=ECHO, *, into=None, **fields):
        """Write a small Python extension, by default an installed one; `body` can use `ext`."""
        directory = (into or self.installed) / name
        directory.mkdir(parents=True)
        manifest = {"name": name, "version": "1.0", "exec": "python3", "args": ["main.py"], **fields}
        (directory / "extension.json").write_text(json.dumps(manifest))
        head = f"from zotd.sdk import *\next = Extension({name!r})\n"
        (directory / "main.py").write_text(head + textwrap.dedent(body) + "\next.run()\n")
        return directory

    def connect(self):
        return connect(self.socket)

    def session(self, url="http://127.0.0.1:9", **options):
        """Create a session in the working directory and return its ID."""
        options = {
            "provider": "openai",
            "base_url": url,
            "secrets": {"api_key": "sk-x"},
            "env": self.shell.env,
        } | options
        with self.connect() as connection:
            created = connection.call("session.create", options, cwd=str(self.cwd), name="tests")
            session = text(child(created, "session"), "id")
            connection.call("ext.list", session=session)  # from here on its extensions are known
        return session

    def until(self, name, *states):
        """Wait until the extension is in one of these states."""
        with self.connect() as connection:
            connection.call("subscribe", topics=["extensions"])
            listed = connection.call("ext.list", cwd=str(self.cwd))
            if any(one["name"] == name and one["state"] in states for one in listed["extensions"]):
                return
            for event in connection.events(10):
                if event.get("extension") == name and event.get("state") in states:
                    return

    def command(self, session, name, args=""):
        """Run a slash command, which waits until the extension has started, and return the response."""
        with self.connect() as connection:
            return connection.call("run_command", session=session, name=name, args=args)

    def model(self, *replies):
        """Start a model server that cycles through these replies; return its URL."""
        flags = [flag for reply in replies for flag in ("--reply", reply)]
        return self._serve(flags)

    def scripted(self, *replies):
        """Start a model server that plays these scripted replies once (`zotd.testing.script`); return its URL."""
        path = self.home.parent / "script.json"
        path.write_text(json.dumps(replies))
        return self._serve([str(path)])

    def _serve(self, flags):
        command = warm.command("zotd.testing.model_server", *flags)
        process = self._stack.enter_context(
            subprocess.Popen(command, env=self.shell.env, stdout=subprocess.PIPE, text=True)
        )
        self._stack.callback(process.kill)
        assert process.stdout is not None
        return json.loads(process.stdout.readline())["openai_url"]
