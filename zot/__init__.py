"""Agents for Python programs: they read, write and run things in a directory, and call your functions.

    from zot import Agent

    result = await Agent(model="claude-opus-4-8").run("What does this project do?")
    print(result.text)

These names are the public interface; they change as `docs/python.md` says. All other modules may change at any time.
"""

from zot import main_interpreter  # noqa: F401  (first: what the others import must not be loaded elsewhere)
from zot.agent import Agent
from zot.attach_options import AttachOptions
from zot.errors import AgentBusyError, AgentError, OptionError, OutputError, RunError, RunStoppedError
from zot.function_tools import Call, Image, tool
from zot.options import AgentOptions
from zot.permissions import Allow, CallContext, CanUseTool, Deny
from zot.results import FinishedCall, RunResult
from zot.run_stream import RunStream
from zotd.wire import events

__all__ = [
    "Agent",
    "AgentBusyError",
    "AgentError",
    "AgentOptions",
    "Allow",
    "AttachOptions",
    "Call",
    "CallContext",
    "CanUseTool",
    "Deny",
    "FinishedCall",
    "Image",
    "OptionError",
    "OutputError",
    "RunError",
    "RunResult",
    "RunStoppedError",
    "RunStream",
    "events",
    "tool",
]
