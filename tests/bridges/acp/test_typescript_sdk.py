"""An editor that uses the published TypeScript SDK, in a program of its own; every frame is judged by the schema."""

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.npm.packages import INSTALL_S
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, calls, text

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

CLIENT = Path(__file__).parent / "client.mjs"

WAIT_S = 40.0
"""For the whole visit; 2 s here."""

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"}))


async def test_a_visit(world, sdk):
    endless = ScriptedReply([TextPart(["For", " ever"]), Hang()])
    here = await world(text("Hello", " there."), WRITE, text("No. "), WRITE, text("Yes. "), endless)
    program = await asyncio.create_subprocess_exec(
        "node", CLIENT, sdk, here.cwd, *here.command, env=here.env, stdout=PIPE, limit=32 * 1024 * 1024
    )
    async with asyncio.timeout(WAIT_S):
        said, _ = await program.communicate()
    told = json.loads(said)
    here.judge([tuple(frame) for frame in told["frames"]])
    facts = told["facts"]
    assert facts.pop("introduced")["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"image": True, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
    }
    assert facts.pop("options")[2] == "high"
    assert facts == {
        "modes": ["yolo", "workspace", "ask", "read-only"],
        "first": ["end_turn", "Hello there."],
        "rejected": ["end_turn", "failed"],
        "allowed": ["end_turn", "completed"],
        "cancelled": "cancelled",
        "command": ["end_turn", True],
        "listed": ["hi"],
        "loaded": [
            *("user_message_chunk", "agent_message_chunk"),
            *("user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"),
            *("user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"),
            *("user_message_chunk", "agent_message_chunk", "usage_update"),
        ],
        "usage": True,
        "notice": "warning",
        "closed": {},
        "deleted": {},
        "left": 0,
        "unknown": -32601,
        "exit": 0,
    }
    assert (here.cwd / "a.txt").read_text() == "one\n"
