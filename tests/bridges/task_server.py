"""An MCP server by hand whose tools run as tasks; `cancelled` is the one that does not."""

import json
import sys

REQUIRED = (
    "steps",
    "asks",
    "asks and fails",
    "fails",
    "fails in words",
    "given up",
    "endless",
    "forgotten",
    "at once",
    "wrong",
)
CAPABILITIES: dict[str, object] = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
NAMES = {"action": {"type": "string", "enum": ["go", "stay"]}}

tasks: dict[str, tuple[str, list[tuple[str, ...]], object]] = {}
"""Name, and states to come, of each task."""
waiting: dict[str, object] = {}
"""The request for the result of a task that asks, by the id of the question."""
cancelled: list[str] = []


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def words(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def task_of(key, status, message=None, **more):
    now = "2026-01-01T00:00:00Z"
    return {
        "taskId": key,
        "status": status,
        "createdAt": now,
        "lastUpdatedAt": now,
        "ttl": 60_000,
        "pollInterval": 10,
        **({"statusMessage": message} if message else {}),
        **more,
    }


STATES: dict[str, list[tuple[str, ...]]] = {
    "steps": [("working", "one of two"), ("working", "two of two"), ("completed",)],
    "asks": [("working",), ("input_required",), ("completed",)],
    "asks and fails": [("input_required",), ("failed",)],
    "fails": [("failed", "in words")],
    "fails in words": [("failed", "no paper left")],
    "given up": [("cancelled", "the printer is sold")],
    "wrong": [("completed",)],
}


def list_tools():
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    for name in REQUIRED:
        tool = {"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
        yield {**tool, **({"outputSchema": schema} if name == "wrong" else {})}
    yield {"name": "cancelled", "inputSchema": {"type": "object"}}


def call_tool(key, params):
    name = params["name"]
    if name == "cancelled":
        say(id=key, result=words(json.dumps(cancelled)))
    elif "task" not in params:
        say(id=key, error={"code": -32601, "message": "only as a task"})
    elif name == "at once":
        say(id=key, result=words(json.dumps({"ttl": params["task"]["ttl"], "meta": sorted(params["_meta"])})))
    else:
        task = f"t{key}"
        tasks[task] = (name, list(STATES.get(name, [])), params["_meta"]["progressToken"])
        say(id=key, result={"task": task_of(task, "working")})


def get_task(key, task):
    name, states, token = tasks[task]
    if name == "forgotten":
        say(id=key, error={"code": -32602, "message": "there is no such task"})
        return
    if name == "steps":
        say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": "of the server"})
    say(id=key, result=task_of(task, *(states.pop(0) if len(states) > 1 else states[0] if states else ("working",))))


def result_of(key, task):
    name = tasks[task][0]
    if name.startswith("asks"):
        question = f"q{key}"
        waiting[question] = key
        schema = {"type": "object", "properties": NAMES, "required": ["action"]}
        meta = {"io.modelcontextprotocol/related-task": {"taskId": task}}
        say(
            id=question, method="elicitation/create", params={"message": name, "requestedSchema": schema, "_meta": meta}
        )
    elif name == "fails":
        say(id=key, result=words("it has failed", isError=True))
    elif name == "fails in words":
        say(id=key, error={"code": -32000, "message": "error 17"})
    else:
        say(id=key, result=words(f"{name} are done"))


def answered(message):
    key = waiting.pop(message["id"])
    found = message["result"]
    if found["action"] == "accept":
        say(id=key, result=words(f"I {found['content']['action']}"))
    else:
        say(id=key, error={"code": -32000, "message": f"told to {found['action']}"})


def handle(message):
    key, params = message.get("id"), message.get("params", {})
    match message.get("method"):
        case "initialize":
            info = {"name": "tasks", "version": "1"}
            version = params["protocolVersion"]
            say(id=key, result={"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info})
        case "tools/list":
            say(id=key, result={"tools": list(list_tools())})
        case "tools/call":
            call_tool(key, params)
        case "tasks/get":
            get_task(key, params["taskId"])
        case "tasks/result":
            result_of(key, params["taskId"])
        case "tasks/cancel":
            cancelled.append(tasks[params["taskId"]][0])
            sys.stderr.write(f"{cancelled[-1]} was cancelled\n")
            sys.stderr.flush()
            say(id=key, result=task_of(params["taskId"], "cancelled"))
        case None if key in waiting:
            answered(message)


for line in sys.stdin:
    handle(json.loads(line))
