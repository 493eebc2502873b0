import contextlib
import json
import sys
from pathlib import Path

import pytest

from zotd.exthost import mcp
from zotd.testing import warm
from zotd.testing.ext_driver import ExtensionDriver

HERE = Path(__file__).parent

LOST = "the MCP server was lost during the call; it is unknown whether the call had an effect"


def program(name, *args):
    """The entry of one of our servers in an `mcp.json`."""
    if name == "sample_server":  # it imports the MCP package
        command, *arguments = warm.command(f"tests.bridges.{name}", *args)
        return {"command": command, "args": arguments}
    return {"command": sys.executable, "args": [str(HERE / f"{name}.py"), *args]}


def warm_bridges(monkeypatch):
    """Have bridges start from the template process: the MCP package takes a second to import."""
    monkeypatch.setattr(mcp, "BRIDGE", warm.command("zotd.bridges.mcp"))


@pytest.fixture
def processes():
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def launch(processes, tmp_path):
    """Starts the bridge to a server `srv` (an entry of an `mcp.json`) as the host does; nothing is said yet.

    `content` is what becomes of the file before the bridge reads it.
    """

    def launch(entry, *, content=None, **env):
        file, project = tmp_path / "mcp.json", tmp_path / "project"
        project.mkdir(exist_ok=True)
        file.write_text(json.dumps({"mcpServers": {"srv": entry}}))
        [manifest], _ = mcp.servers(file, directory=project, logins=tmp_path / mcp.LOGINS)
        file.write_text(content or file.read_text())
        return processes.enter_context(ExtensionDriver(manifest.argv, cwd=project, env=env))

    return launch


@pytest.fixture
def start(launch):
    """The same, and shakes hands; the tools by name."""

    def start(entry, **env):
        driver = launch(entry, **env)
        driver.tools = {frame["name"]: frame for frame in driver.greet() if "name" in frame}
        return driver

    return start


@pytest.fixture
def sample(start):
    def sample(cwd=None, env=None, **variables):
        return start({**program("sample_server"), "cwd": cwd, "env": env}, **variables)

    return sample


@pytest.fixture
def odd(start):
    return lambda behaviour: start(program("odd_server", behaviour))


@pytest.fixture
def lost(launch):
    """Starts a bridge that ends by itself; its exit code and the last line of its log."""

    def lost(entry, **env):
        driver = launch(entry, **env)
        driver.rest()
        return driver.end(), driver.log().splitlines()[-1]

    return lost
