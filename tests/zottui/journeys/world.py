"""A person at a terminal: a home of their own, the real daemon, a scripted model, and `zot` in tmux."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.zottui.tmux import Tmux
from zotd.client.blocking import connect
from zotd.client.fields import child, text
from zotd.testing import warm
from zotd.testing.live_daemon import DaemonProcess, leave_mark
from zotd.testing.model_server import ModelServer
from zotd.testing.script import Gate, Refusal, ScriptedReply, TextPart

BIN = str(Path(sys.executable).parent)

ZOT = [sys.executable, "-m", "zotd.cli"]

END_S = 40
"""For a process that was killed."""

PROMPT = r"^❯ ?$"
"""An empty editor."""


def rests(zot):
    """Wait until nothing runs any more: a reply is on the screen before its run has ended.

    The screen must also show the editor. It is cleared with the status line while `zot` prints above them.
    """

    def idle():
        screen = zot.screen()
        return re.search(PROMPT, screen, re.MULTILINE) and not re.search("thinking…|working…|writing…", screen)

    zot.until(idle, "the end of the run")


class Model:
    """A scripted model in a thread of its own; what it says waits where the script has a gate."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._answers = []
        self._gates = []
        self.server = ModelServer(self._next)

    def says(self, *answers):
        """What it answers to the next requests: texts, lists of steps, replies, or refusals."""
        self._answers += [_reply(answer) for answer in answers]

    def gate(self):
        """A place in a script where it waits for `open`."""
        self._gates.append(self._call(_gate()))
        return self._gates[-1]

    def open(self, gate):
        self._loop.call_soon_threadsafe(gate.event.set)

    @property
    def requests(self):
        return self.server.requests

    def seen(self, number=-1):
        """What the model was shown in a request, as text."""
        return json.dumps(self.requests[number].body, ensure_ascii=False)

    def _next(self, _):
        return self._answers.pop(0) if self._answers else ScriptedReply([TextPart(["nothing more to say"])])

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            self._call(self.server.__aenter__())
            yield self
        finally:
            for gate in self._gates:
                self.open(gate)
            self._call(self.server.__aexit__(None, None, None))
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(20)
            self._loop.close()


async def _gate():
    return Gate(asyncio.Event())


def _reply(answer):
    if isinstance(answer, ScriptedReply | Refusal):
        return answer
    return ScriptedReply([TextPart([answer])] if isinstance(answer, str) else answer)


class World:
    """Everything that one test needs; `zot` may be started more than once."""

    def __init__(self, folder, model, stack, **config):
        self.model = model
        self._stack = stack
        self.folder = folder
        self.daemon = DaemonProcess(folder)
        place = self.daemon.place
        self.home, self.cwd = place.home, place.cwd
        self.env = {
            **place.env,
            "PATH": os.pathsep.join([BIN, os.environ["PATH"]]),
            "OPENAI_API_KEY": "sk-test",
            "LANG": "C.UTF-8",
            "TERM": "tmux-256color",
        }
        leave_mark(self.home)
        self.configure(**config)

    def configure(self, **tables):
        """Write `config.toml`: the scripted model, and these tables besides."""
        lines = ['model = "scripted"', "[providers.openai]", f'base_url = "{self.model.server.openai_url}"']
        for name, values in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")

    def zot(self, *args, columns=100, rows=30, cwd=None, **env):
        """A terminal with `zot` in it; entered, and left at the end of the test."""
        command = [*ZOT, *args]
        terminal = Tmux(command, folder=cwd or self.cwd, env=self.env | env, columns=columns, rows=rows)
        return self._stack.enter_context(terminal)

    def shell(self, *, columns=100, rows=30, **env):
        """A terminal with a shell in it."""
        env = self.env | {"PS1": "$ ", "ENV": ""} | env
        return self._stack.enter_context(Tmux(["sh"], folder=self.cwd, env=env, columns=columns, rows=rows))

    def run(self, *command):
        """The output of another command, `zotctl` for one."""
        program = warm.command({"zotctl": "zotctl", "zot": "zotd.cli"}[command[0]])
        done = subprocess.run(
            [*program, *command[1:]],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def script(self, name, body):
        """The path of a shell script."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def fifo(self, name):
        """A file in the working directory whose reader waits for `feed`."""
        os.mkfifo(self.cwd / name)

    def feed(self, name, text):
        (self.cwd / name).write_text(text)

    def session(self, **options):
        """The id of a new session here."""
        with connect(self.daemon.place.socket) as connection:
            created = connection.call("session.create", options, cwd=str(self.cwd), env=self.env)
            return text(child(created, "session"), "id")

    def call(self, command, **fields):
        """What another client gets from the daemon."""
        with connect(self.daemon.place.socket) as connection:
            return connection.call(command, fields)


@contextmanager
def world(folder, **config):
    with ExitStack() as stack:
        model = stack.enter_context(Model().serving())
        made = World(folder, model, stack, **config)
        stack.push(made.daemon)
        stack.callback(made.daemon.end)  # in order, if it has not ended
        made.daemon.start()
        yield made
