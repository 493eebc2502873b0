"""Extensions that the daemon's template process forks: they are extensions as any other."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.exthost.conftest import run
from tests.faults.adoption import Count, town
from zotd.exthost import mcp, modules
from zotd.exthost.discovery import Discovered
from zotd.process import OrphanReaper, orphans_adopted
from zotd.process.census import KERNEL
from zotd.tasks import contained
from zotd.template.forks import Forks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")

ENV = {name: value for name, value in os.environ.items() if name.startswith("PYTHON") or name == "PATH"}
LIMIT_S = 30

SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "hi", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    }
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}
        print(json.dumps(answer), flush=True)
"""


@asynccontextmanager
async def forking(workshop, *, bridges=False, **options):
    """A host whose extensions are forked; the forks too."""
    with orphans_adopted():
        async with asyncio.TaskGroup() as tasks:

            def spawn(name, work):
                contained(tasks, name, work)

            reaper = OrphanReaper(workshop.home, spawn)
            forks = Forks(ENV, spawn, reaper.ledger)
            template = forks.bridges if bridges else forks.extensions
            try:
                template.begin()
                async with asyncio.timeout(LIMIT_S):
                    await template.serves.wait()
                async with workshop.host(env=ENV, reaper=reaper, forks=forks, **options) as host:
                    yield host, forks
            finally:
                await forks.stop()
                await reaper.close()


def sdk(workshop, name, body="", **fields):
    directory = workshop.extension(name, [sys.executable, "main.py"], **fields)
    (directory / "main.py").write_text(
        f"import os\nfrom zotd.sdk import Extension\next = Extension({name!r})\n"
        f"@ext.tool\ndef {name}_pid() -> str:\n    return f'{{os.getpid()}} {{os.getppid()}}'\n{body}\next.run()\n"
    )
    return directory


def is_fork(pid):
    """Whether the template process was executed last: its command is still at the top of the stack of its forks."""
    stack = next(line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if line.endswith("[stack]"))
    begin, end = (int(word, 16) for word in stack.split()[0].split("-"))
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(begin)
        return b"zotd.template.fork_server" in memory.read(end - begin)


async def test_an_extension_is_forked_and_is_a_child_of_the_daemon(workshop):
    sdk(workshop, "one")

    async with forking(workshop) as (host, forks):
        _, text = await run(host, "one_pid")

        pid, parent = map(int, text.split())
        assert parent == os.getpid()
        assert is_fork(pid)
        status = KERNEL.status(pid)
        assert status is not None
        assert status.session == pid
        assert forks.extensions.pid != pid


async def test_a_forked_extension_is_restarted_when_it_is_killed(workshop):
    sdk(workshop, "one")

    async with forking(workshop) as (host, _):
        _, first = await run(host, "one_pid")
        os.kill(int(first.split()[0]), signal.SIGKILL)
        await workshop.heard.until(lambda: [state for _, state, _ in workshop.heard.states].count("ready") == 2)
        _, second = await run(host, "one_pid")

    assert first != second


async def test_the_host_of_python_modules_is_forked(workshop):
    directory = workshop.home / "extensions"
    (directory / "tools").mkdir(parents=True)
    (directory / "tools" / "pids.py").write_text("import os\nasync def run() -> str:\n    return str(os.getpid())\n")
    tools_host = modules.tools_host([directory], cwd=workshop.cwd, python=None)
    assert tools_host is not None
    found = Discovered([tools_host])

    async with forking(workshop, find=lambda: found) as (host, _):
        _, pid = await run(host, "pids")

        assert is_fork(int(pid))


async def test_the_bridge_of_an_mcp_server_is_forked(workshop, tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": entry, "b": entry}}))

    async with forking(
        workshop, bridges=True, find=lambda: Discovered(mcp.servers(tmp_path / "mcp.json", directory=tmp_path)[0])
    ) as (host, _):
        assert await run(host, "a__hi") == await run(host, "b__hi") == (False, "hello")
        assert all(is_fork(extension.serving.process.pid) for extension in host.extensions)


async def test_an_extension_that_is_stopped_while_it_is_forked_never_runs(workshop):
    directory = sdk(workshop, "one")
    (directory / "main.py").write_text("open('ran', 'w')")

    async with forking(workshop, wait=False) as (host, _):
        (extension,) = host.extensions
        extension.begin_stop()
        async with asyncio.timeout(LIMIT_S):
            await extension.until(lambda: extension.state == "stopped")

    assert not (directory / "ran").exists()
    assert not [path for path in (workshop.home / "run").rglob("*") if path.is_file()]


async def test_a_directory_that_is_gone_is_reported_as_by_a_cold_start(workshop):
    directory = sdk(workshop, "one")
    found = workshop.find()
    (directory / "main.py").unlink()
    (directory / "extension.json").unlink()
    directory.rmdir()

    async with forking(workshop, wait=False, find=lambda: found):
        await workshop.heard.until(
            lambda: any("could not be started" in reason for _, _, reason in workshop.heard.states)
        )


async def test_a_forked_extension_that_daemonizes_leaves_nothing(workshop):
    directory = sdk(workshop, "one")
    body = "import os\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sh', ['sh', '-c', 'echo $$ > away; exec sleep 1000'])\n"
    (directory / "main.py").write_text(body + (directory / "main.py").read_text())

    async with forking(workshop) as (host, _):
        await run(host, "one_pid")
        async with asyncio.timeout(LIMIT_S):
            while not (directory / "away").exists() or not (directory / "away").read_text():
                await run(host, "one_pid")
        away = int((directory / "away").read_text())
        running = KERNEL.status(away)
        assert running is not None
        assert running.is_alive

    status = KERNEL.status(away)
    assert status is None or not status.is_alive


async def test_a_forked_extension_is_adopted_by_the_next_daemon():
    async with town() as place:
        place.install()
        manifest = place.daemon.place.home / "extensions" / "counter" / "extension.json"
        fields = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**fields, "args": fields["args"][2:]}))  # without the flags of the interpreter
        env = {name: place.daemon.place.env[name] for name in ("PATH", "HOME", "PYTHONPATH")}
        place.daemon.start()
        async with place.opened(env=env) as client:
            found = await place.count()
            while not is_fork(found.pid):  # the template process did not serve yet
                await client.ask("ext.reload", session=place.session, name="counter")
                found = await place.count()
        place.crash()

        async with place.opened():
            assert await place.count() == Count(found.pid, found.number + 1)
