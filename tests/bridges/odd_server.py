"""An MCP server by hand, which misbehaves as its argument says; without one it is tiny and good."""

import json
import os
import pathlib
import signal
import sys
import time

TOOLS = [{"name": "hi", "inputSchema": {"type": "object"}}]


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def answer(request, **result):
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


def initialize(request):
    capabilities = {} if behaviour == "no tools" else {"tools": {"listChanged": True}}
    version = request["params"]["protocolVersion"]
    answer(request, protocolVersion=version, capabilities=capabilities, serverInfo={"name": "odd", "version": "1"})


def list_tools(request):
    if behaviour == "tasks":
        answer(request, tools=[{**TOOLS[0], "name": "later", "execution": {"taskSupport": "required"}}, *TOOLS])
        return
    names = {"names": ["a.b", "a b", "x" * 70, "x" * 71]}.get(behaviour, [])
    page = int(request.get("params", {}).get("cursor", 0))
    if behaviour == "pages":
        tool = {**TOOLS[0], "name": f"page{page}"}
        answer(request, tools=[tool], **({"nextCursor": str(page + 1)} if page < 2 else {}))
    else:
        answer(request, tools=[{**TOOLS[0], "name": name} for name in names] or TOOLS)


def call_tool(request):
    if behaviour == "bad result":
        answer(request, content="no list")
    elif behaviour == "code":
        error = {"code": -32000, "message": "too many requests"}
        say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))
    elif behaviour == "deaf":
        os.close(0)
        time.sleep(600)
    elif behaviour == "held pipe" and os.fork() == 0:
        time.sleep(600)  # holds stdout when its parent is gone
    elif behaviour == "held pipe":
        os._exit(5)
    else:
        answer(request, content=[{"type": "text", "text": request["params"]["name"]}])


behaviour = sys.argv[1] if len(sys.argv) > 1 else ""
if behaviour == "early exit":
    sys.stderr.write("I need a licence\n")
    sys.exit(7)
if behaviour == "silent":
    time.sleep(600)
if behaviour.startswith("once "):  # the first process ends in a call, the next one is silent
    mark = pathlib.Path(behaviour.removeprefix("once "))
    if mark.exists():
        time.sleep(600)
    mark.touch()
    behaviour = "held pipe"
if behaviour == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if behaviour == "slow":
    # Without the interpreter's own end: SIGKILL follows in 0.3 s, which is short on a busy machine.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(2, b"goodbye after SIGTERM\n") and 0))
if behaviour == "chatty":
    say("Welcome to my server!")
    say("")
for line in sys.stdin:
    message = json.loads(line)
    kind = message.get("method")
    if behaviour == "refuses" and kind == "initialize":
        say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "no seat left"}}))
    elif kind == "initialize":
        initialize(message)
    elif kind == "tools/list":
        list_tools(message)
    elif kind == "tools/call":
        call_tool(message)
if behaviour in {"stubborn", "slow"}:
    time.sleep(600)
sys.exit("goodbye")
