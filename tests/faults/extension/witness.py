"""Tools of every replay class that write down each time they run: the witness of the fault rig.

A line of the file `witness` in the working directory is `TOOL KEY OPERATION WHAT`, in one write, so that a kill leaves
it whole or not at all. WHAT is `ran`, or what `transfer` answered when it was asked what became of an operation.
"""

import os
import time
from pathlib import Path

from zotd.sdk import Call, Extension, Result

WORK_S = 0.005
"""What a call takes after it is written down, so that a kill can come between its effect and its answer."""

RELAY_S = 30.0
"""Longest wait for the host's tool, which takes milliseconds on a machine that is not busy."""

ext = Extension("witness", "1.0.0")


def witness() -> Path:
    """Where it is written down."""
    return Path(ext.hello.cwd, "witness")


def write_down(tool: str, key: str, call: Call, what: str = "ran") -> str:
    """Add a line."""
    file = os.open(witness(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{tool} {key} {call.operation_key or '-'} {what}\n".encode())
    finally:
        os.close(file)
    time.sleep(WORK_S)
    return f"{tool} {what}"


@ext.tool
def note(key: str, call: Call) -> str:
    """Is never repeated: it says nothing about it."""
    return write_down("note", key, call)


@ext.tool(replay="safe")
def look(key: str, call: Call) -> str:
    """May be repeated at will."""
    return write_down("look", key, call)


@ext.tool(replay="safe")
def relay(key: str) -> Result:
    """May be repeated at will, if it were not for what it has the host run."""
    return ext.call_tool("bash", {"command": f"echo 'bash {key} - ran' >> witness"}).result(RELAY_S)


@ext.tool(replay="idempotent")
def stamp(key: str, call: Call) -> str:
    """May be repeated with the same operation key."""
    return write_down("stamp", key, call)


@ext.tool(replay="reconcile")
def transfer(key: str, call: Call) -> Result:
    """Wants to be asked before it is repeated."""
    if not call.reconcile:
        return Result(write_down("transfer", key, call))
    line = f"transfer {key} {call.operation_key} ran"
    state = "completed" if line in witness().read_text("utf-8").splitlines() else "not_started"
    return Result(write_down("transfer", key, call, state), structured={"state": state})


ext.run()
