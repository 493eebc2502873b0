"""An MCP server by hand that asks the model as often, as long and as late as it can."""

import json
import sys
from collections import Counter
from collections.abc import Callable

AT_ONCE = 1_000
IN_A_ROW = 100
HUGE = 10 * 1024 * 1024

waiting: dict[str, Callable[[object], None]] = {}
"""What is done with the answer, by the id of the question."""
told: list[object] = []
"""Answers after the end of a call."""


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(key, text):
    say(id=key, result={"content": [{"type": "text", "text": text}]})


def ask(name, text, then):
    waiting[name] = then
    message = {"role": "user", "content": {"type": "text", "text": text}}
    say(id=name, method="sampling/createMessage", params={"messages": [message], "maxTokens": 5})


def summed(answers):
    errors = Counter(one["error"]["message"] for one in answers if "error" in one)
    good = sum("result" in one for one in answers)
    return ", ".join([f"{good} answers", *(f"{count} times: {error}" for error, count in errors.items())])


def at_once(key):
    answers = []

    def collect(answer):
        answers.append(answer)
        if len(answers) == AT_ONCE:
            result(key, summed(answers))

    for number in range(AT_ONCE):
        ask(f"{key} {number}", "hello", collect)


def in_a_row(key):
    answers = []

    def again(answer):
        answers.append(answer)
        if len(answers) < IN_A_ROW:
            ask(f"{key} {len(answers)}", "again", again)
        else:
            result(key, summed(answers))

    ask(f"{key} 0", "again", again)


def huge(key):
    ask(f"{key} huge", "x" * HUGE, lambda answer: result(key, summed([answer])))


def late(key):
    result(key, "done")
    ask(f"{key} late", "hello", told.append)


def leaves(key):
    ask(f"{key} left", "hello", told.append)
    result(key, "done without it")


def tell(key):
    result(key, json.dumps(told))


TOOLS = {"at once": at_once, "in a row": in_a_row, "huge": huge, "late": late, "leaves": leaves, "told": tell}

for line in sys.stdin:
    message = json.loads(line)
    key = message.get("id")
    match message.get("method"):
        case "initialize":
            info = {"name": "greedy", "version": "1"}
            version = message["params"]["protocolVersion"]
            assert "sampling" in message["params"]["capabilities"]
            say(id=key, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        case "tools/list":
            say(id=key, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
        case "tools/call":
            TOOLS[message["params"]["name"]](key)
        case None if key in waiting:
            waiting.pop(key)(message)
