"""An MCP server by hand whose tool never ends, and makes a noise meanwhile."""

import itertools
import json
import os
import signal
import sys
import time


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def progress(token, text=""):
    say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": text})


def endless_requests():
    for number in itertools.count():
        say(id=f"r{number}", method="ping")  # it reads none of the answers


def endless_line():
    while True:
        sys.stdout.write("x" * 65_536)


def repeat(what):
    while True:
        what()
        sys.stdout.flush()


def make_noise(token):
    progress(token)
    match how:
        case "hangs":
            time.sleep(600)
        case "requests":
            endless_requests()
        case "endless line":
            endless_line()
        case "progress":
            repeat(lambda: progress(token, "x" * 100_000))
        case "lines":
            repeat(lambda: sys.stdout.write("no message\n" * 1000))
        case "stderr":
            repeat(lambda: sys.stderr.write("a complaint\n" * 1000))
        case "huge lines":
            repeat(lambda: progress(token, "x" * 10_000_000))


how = sys.argv[1]
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:  # a process that has left the server's group
        os.setsid()
        time.sleep(600)
for line in sys.stdin:
    request = json.loads(line)
    kind = request.get("method")
    if kind == "initialize":
        information = {"serverInfo": {"name": "noisy", "version": "1"}, "capabilities": {"tools": {}}}
        say(id=request["id"], result={"protocolVersion": request["params"]["protocolVersion"], **information})
    elif kind == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("go", "hi")]
        say(id=request["id"], result={"tools": tools})
    elif kind == "tools/call":
        make_noise(request["params"]["_meta"]["progressToken"])
while how == "stubborn":
    time.sleep(600)
