"""Extensions and MCP servers whose `sandbox` asks for a jail, in a real daemon."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.e2e.shop import until_state
from tests.e2e.test_hosts import log_of, site
from tests.e2e.test_workspace import KEY, opened, results_of
from tests.e2e.test_workspace import user as user  # noqa: PLC0414  (a fixture)
from tests.e2e.test_workspace import yard as yard  # noqa: PLC0414  (a fixture)
from tests.needs import needs
from zotd.core import supervision
from zotd.exthost.host import ExtensionTimeouts
from zotd.exthost.validation import validate
from zotd.jail import Mechanism
from zotd.testing import hostile
from zotd.testing.script import CallPart, calls, text

IMPORTS = f"""
import subprocess, sys
sys.path.insert(0, {str(Path(hostile.__file__).parent)!r}); sys.argv[1:] = ["look"]
from hostile import *
"""

EXTENSION = f"""
{IMPORTS}
def run(frame):
    done = subprocess.run(frame["args"]["command"], shell=True, capture_output=True, text=True)
    say({{"type": "tool_result", "id": frame["id"], "content": [{{"type": "text", "text": done.stdout + done.stderr}}]}})

greet()
serve(run)
"""

SERVER = """
import json, subprocess, sys

TOOL = {"name": "look", "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}}}
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "looking", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            command = message["params"]["arguments"]["command"]
            done = subprocess.run(command, shell=True, capture_output=True, text=True)
            result = {"content": [{"type": "text", "text": done.stdout + done.stderr}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


PROGRAM = {"exec": sys.executable, "args": ["-I", "-S", "main.py"]}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(supervision, "READY_S", 60)


def install(yard, sandbox):
    """An extension in the home, whose tool `look` runs commands."""
    directory = yard.house.place.home / "extensions" / "look"
    directory.mkdir(parents=True)
    (directory / "main.py").write_text(EXTENSION)
    (directory / "extension.json").write_text(json.dumps({**PROGRAM, "name": "look", "sandbox": sandbox}))
    return "look"


def configure(yard, sandbox):
    """An MCP server of the user, with the same tool."""
    program = yard.house.place.folder / "server.py"
    program.write_text(SERVER)
    entry = {"command": sys.executable, "args": ["-I", "-S", str(program)], "sandbox": sandbox}
    (yard.house.place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"srv": entry}}))
    return "srv__look"


KINDS = {"extension": install, "MCP server": configure}
NAMES = {"look": "look", "srv__look": "mcp-srv"}


async def looked(yard, tool, *commands, state="ready"):
    """What the tool's commands print, each in a step of its own. It runs unasked, as in the mode `yolo`."""
    watcher = await yard.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk, _ = await yard.open(*(calls(CallPart(tool, {"command": one})) for one in commands), text("done"), mode="yolo")
    await until_state(watcher, NAMES[tool], state)
    return results_of(await talk.run())


@pytest.mark.parametrize("kind", KINDS)
async def test_its_program_reads_the_workspace_and_no_secret_and_changes_only_its_data(yard, kind):
    (yard.work / "file").write_text("theirs")
    tool = KINDS[kind](yard, {})
    data = yard.house.place.home / "data" / NAMES[tool]
    results = await looked(
        yard,
        tool,
        "cat file 2>/dev/null || cat ~/../work/file",
        "cat ~/.ssh/id",
        f"echo x > {yard.work}/file",
        f"echo kept > {data}/state; cat {data}/state",
    )
    assert "theirs" in results[0]
    assert KEY not in results[1]
    assert (yard.work / "file").read_text() == "theirs"
    assert "kept" in results[3]
    assert (data / "state").read_text() == "kept\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_its_program_may_do_what_it_asks_for(yard, kind):
    notes = yard.home / "notes"
    notes.mkdir()
    tool = KINDS[kind](yard, {"workspace": "write", "write": ["~/notes"], "read": ["~/.ssh"]})
    results = await looked(yard, tool, f"echo x > {yard.work}/made", "echo y > ~/notes/made", "cat ~/.ssh/id")
    assert [path.read_text() for path in (yard.work / "made", notes / "made")] == ["x\n", "y\n"]
    assert KEY in results[2]


@pytest.mark.parametrize("kind", KINDS)
async def test_its_program_reaches_the_hosts_that_it_names_and_no_other(monkeypatch, model, user, kind):
    needs("curl")
    runtime = user / "runtime"
    runtime.mkdir(mode=0o700)
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user, XDG_RUNTIME_DIR=str(runtime)) as yard:
        with site(user) as host:
            tool = KINDS[kind](yard, {"network": [host]})
            results = await looked(
                yard, tool, f"curl -sS http://{host}/page", "curl -sS http://127.0.0.4:80/ || echo no"
            )
        assert "a page" in results[0]
        assert "no" in results[1]
        assert log_of(yard) == [
            (f"extension {NAMES[tool]}", host, "allowed"),
            (f"extension {NAMES[tool]}", "127.0.0.4:80", "refused"),
        ]


async def test_it_is_not_started_where_it_would_not_be_confined_and_says_how_to_start_it(yard):
    install(yard, {"write": ["~/absent"]})
    watcher = await yard.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk, _ = await yard.open(text("done"))
    await until_state(watcher, "look", "restarting")
    [info] = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert f"{yard.home}/absent does not exist" in info["reason"]
    assert "extensions = false in [sandbox]" in info["reason"]
    await yard.configure("[sandbox]\nextensions = false\n")
    await yard.house.connect(role="admin")
    await until_state(watcher, "look", "ready")


async def test_what_it_may_do_is_shown(yard):
    install(yard, {"network": ["api.example.org"], "read": ["~/.aws"]})
    talk, _ = await yard.open(text("done"))
    [info] = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert info["rights"] == "is confined: changes nothing but its own data; reads ~/.aws; reaches api.example.org"


async def test_a_validation_starts_it_in_its_jail(user):
    needs("bwrap")
    directory, secret = user / "work" / "odd", user / "user" / ".ssh" / "id"
    directory.mkdir()
    body = f"try: sys.exit(open({str(secret)!r}).read())\nexcept OSError: greet(); serve()\n"
    (directory / "main.py").write_text(IMPORTS + body)
    env = {"HOME": str(user / "user"), "PATH": os.environ["PATH"], "TMPDIR": str(user / "tmp")}

    async def is_ok(**fields):
        (directory / "extension.json").write_text(json.dumps({**PROGRAM, "name": "look", **fields}))
        return (await validate(directory, env=env, cwd=str(user / "work"), limits=ExtensionTimeouts(10, 10, 10))).is_ok

    assert [await is_ok(sandbox={}), await is_ok(sandbox={"read": ["~/.ssh"]}), await is_ok()] == [True, False, False]
