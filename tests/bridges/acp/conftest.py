"""`zot acp` in a process of its own, an editor at its other end, a real daemon and a scripted model behind it."""

import json
from collections import defaultdict
from contextlib import AsyncExitStack

import acp
import jsonschema
import pytest
from pydantic import TypeAdapter

from tests.bridges.acp.editor import Editor
from tests.npm.packages import installed
from zotd.testing import live_daemon, warm
from zotd.testing.live_daemon import ROOT, DaemonProcess, serving
from zotd.testing.model_server import ModelServer


@pytest.fixture(scope="session")
def sdk(request):
    """The directory of the published TypeScript SDK, which brings the JSON Schema of the protocol along."""
    return installed(request.config) / "@agentclientprotocol" / "sdk"


NEWER = {"notice"}
"""Updates of the published schema that the Python SDK does not have yet."""


class Judge:
    """Knows the schema of each method, and judges every frame by it."""

    def __init__(self, schema, beyond=None):
        """`beyond`: judges frames of methods that are in the unstable schema only; None: there is no other schema."""
        self.schema = schema
        self.beyond = beyond
        self.kinds: dict[str, dict[str, str]] = defaultdict(dict)
        for name, definition in schema["$defs"].items():
            if "x-method" in definition:
                side = "result" if name.endswith("Response") else "params"
                self.kinds[definition["x-method"]][side] = name
        self.whole = jsonschema.Draft202012Validator(schema)
        self.parts = {}

    def judge(self, frames):
        """`frames`: of one connection, as `(sender, message)`. What is wrong with one of them, with the frame."""
        asked: dict[tuple[str, object], str | None] = {}
        for sender, message in frames:
            other = "agent" if sender == "client" else "client"
            method = message["method"] if "method" in message else asked.get((other, message.get("id")))
            judge = self.of(method)
            judge.whole.validate(message)
            if "method" in message:
                asked[sender, message.get("id")] = method
                if sender == "agent" or method in judge.kinds:  # else it is refused
                    judge.part(sender, method, "params", message["params"])
            elif "result" in message:
                judge.part(sender, method, "result", message["result"])

    def of(self, method):
        """The judge of a method."""
        is_unstable = method not in self.kinds and self.beyond is not None and method in self.beyond.kinds
        return self.beyond if is_unstable else self

    def part(self, sender, method, side, value):
        name = self.kinds[method][side]
        if name not in self.parts:
            schema = {"$ref": f"#/$defs/{name}", "$defs": self.schema["$defs"]}
            self.parts[name] = jsonschema.Draft202012Validator(schema)
        self.parts[name].validate(value)
        if sender == "agent":
            understood(name, value)


def understood(name, value):
    """Check that the models of the Python SDK, which forgive much, understand all of what was said."""
    model = getattr(acp.schema, name, None)
    if model is None or value.get("update", {}).get("sessionUpdate") in NEWER:
        return
    adapter = TypeAdapter(model)
    assert adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True, exclude_unset=True) == value


@pytest.fixture(scope="session")
def judge(sdk):
    stable, unstable = (
        json.loads((sdk / "schema" / "v1" / f"schema{kind}.json").read_text()) for kind in ("", ".unstable")
    )
    return Judge(stable, Judge(unstable)).judge


class World:
    """A daemon whose model says what a script tells it, and editors that start `zot acp`."""

    def __init__(self, stack, place, server, judge, daemon=None):
        self.command = warm.command("zotd.cli", "acp")
        self.place = place
        self.server = server
        self.daemon = daemon
        """The process, when it has one of its own."""
        self.cwd = place.cwd
        self.env = {**place.env, "OPENAI_API_KEY": "sk-scripted", "PYTHONPATH": str(ROOT)}
        self._stack = stack
        self._judge = judge

    async def editor(self, *, env=None, **options):
        """An editor with the published Python SDK; each frame of it is judged at the end."""
        editor = Editor(self.command, env or self.env, self.place.folder, **options)
        self._stack.callback(self.judge, editor.frames)
        await self._stack.enter_async_context(editor)
        return editor

    def judge(self, frames):
        assert frames
        self._judge(frames)


@pytest.fixture
async def world(tmp_path, judge):
    """`await world(answer, ...)`: the daemon is in this loop; with `process=True` it can be killed."""
    async with AsyncExitStack() as stack:

        async def world(*answers, process=False, config=""):
            script = answers[0] if len(answers) == 1 and callable(answers[0]) else answers
            server = await stack.enter_async_context(ModelServer(script))
            place = live_daemon.place(tmp_path)
            place.home.mkdir(mode=0o700)
            settings = f'provider = "openai"\n{config}\n[providers.openai]\nbase_url = "{server.openai_url}"\n'
            (place.home / "config.toml").write_text(settings)
            if process:
                daemon = stack.enter_context(DaemonProcess(tmp_path))
                return World(stack, daemon.place, server, judge, daemon)
            return World(stack, await stack.enter_async_context(serving(tmp_path)), server, judge)

        yield world
