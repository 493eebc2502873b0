import os
from pathlib import Path

import msgspec
import pytest

from zotd.core.ports import ToolContext
from zotd.tools import TOOLS
from zotd.wire.content import Text


@pytest.fixture
def context(tmp_path):
    """Makes what a tool gets besides its arguments; the working directory is `work`, empty at first."""
    cwd = tmp_path / "work"
    cwd.mkdir()

    def make(**changes) -> ToolContext:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        given = ToolContext(
            session="s_1", call_id="c_1", cwd=str(cwd), env=env, out_dir=str(tmp_path / "out"), progress=lambda _: None
        )
        return msgspec.structs.replace(given, **changes)

    return make


@pytest.fixture
def cwd(context):
    """The working directory."""
    return Path(context().cwd)


@pytest.fixture
def call(context):
    """Calls a tool by name; gives the text of its result, and whether it is an error."""
    tools = {tool.spec.name: tool for tool in TOOLS}

    async def run(name: str, args: dict[str, object], **changes) -> tuple[str, bool]:
        outcome = await tools[name].run(args, context(**changes))
        [block] = outcome.content
        assert isinstance(block, Text)
        return block.text, outcome.is_error

    return run
