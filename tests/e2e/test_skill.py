"""The model extends itself: it reads the skill, writes an extension, checks it, reloads and calls it, in one session."""

import json
import os
import sys
from pathlib import Path

from tests.e2e.shop import Shop
from zotd.testing.script import CallPart, calls, text

MAIN = """#!/usr/bin/env python3
import json, sys

def say(**frame):
    print(json.dumps(frame), flush=True)

say(type="hello", name="dice", version="1.0.0", capabilities=["tools"])
say(type="register_tool", name="roll", description="Roll a die.", schema={"type": "object", "properties": {}})
say(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "tool_call":
        say(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "a fair 4"}], is_error=False)
    elif frame["type"] == "shutdown":
        break
"""


async def test_the_model_writes_an_extension_checks_it_reloads_and_calls_it(process, model, look, results):
    shop = Shop(process)
    dice = shop.installed / "dice"
    bin_ = Path(sys.executable).parent
    shop.env["PATH"] = os.pathsep.join([str(bin_), shop.env["PATH"]])
    manifest = json.dumps({"name": "dice", "exec": "python3", "args": ["main.py"]})
    server = await model(
        calls(CallPart("skill", {"name": "write-zot-extension"})),
        calls(
            CallPart("write", {"path": str(dice / "extension.json"), "content": manifest}),
            CallPart("write", {"path": str(dice / "main.py"), "content": MAIN}),
        ),
        calls(CallPart("bash", {"command": f"zotctl ext validate {dice}"})),
        calls(CallPart("bash", {"command": "zotctl ext reload"})),
        calls(CallPart("roll")),
        text("You rolled a four."),
    )
    talk = await shop.open(server)
    events = await talk.run("Give yourself a tool that rolls dice, and roll.")
    said = look.only(events, "tool_result")
    assert [one["is_error"] for one in said] == [False] * 6, said
    assert "register_tool" in said[0]["content"][0]["text"]
    assert "[exit 0]" in said[3]["content"][0]["text"]
    assert "dice" in said[4]["content"][0]["text"]
    assert (said[5]["extension"], said[5]["content"][0]["text"]) == ("dice", "a fair 4")
    assert "roll" not in str(server.requests[3].body["tools"])
    assert "roll" in str(server.requests[4].body["tools"])
    assert look.only(events, "assistant_message")[-1]["content"][0]["text"] == "You rolled a four."
