"""The program of examples/embed, run as in the documentation."""

import asyncio
import sys
from pathlib import Path

import pytest

from zotd.client import blocking
from zotd.testing.script import text

EXAMPLES = Path(__file__).parents[2] / "examples/embed"


@pytest.fixture
def run(place):
    """`await run(program, server, *arguments)`: exit code, standard output, standard error."""

    async def run(program, server, *arguments):
        flags = ["--provider=openai", f"--base-url={server.openai_url}", "--api-key=sk-x"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(EXAMPLES / program), *flags, *arguments),
            cwd=place.cwd,
            env=place.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    return run


async def test_daemon_client(run, model, place):
    code, out, err = await run("daemon_client.py", await model(text("hi")), "go")
    assert (code, out, "zot --resume s_" in err) == (0, "hi", True)
    with blocking.connect(place.socket) as connection:
        assert "name" in str(connection.call("session.list"))
        connection.call("hello", role="admin")
        connection.call("daemon.shutdown")
        connection.wait_for_end(10)
