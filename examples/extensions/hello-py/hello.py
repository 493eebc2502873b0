#!/usr/bin/env python3
"""The whole protocol by hand: what an extension is when no SDK stands between it and the host."""

import json
import sys


def send(kind: str, **fields: object) -> None:
    """Write one frame; flushed, for stdout is a pipe and would keep it."""
    print(json.dumps({"type": kind, **fields}), flush=True)


send("hello", name="hello-py", version="1.0.0", capabilities=["commands"])
send("register_command", name="hellopy", description="have the model greet a person")
send("ready")

for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "command_invoked":
        whom = frame["args"] or "me"
        send("command_response", id=frame["id"], action="prompt", prompt=f"Greet {whom} very briefly. Add one emoji.")
    elif frame["type"] == "shutdown":
        send("shutdown_ack")
        break
