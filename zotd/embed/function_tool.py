"""A tool that is a Python function of the program that embeds sessions.

The schema of its arguments comes from the type hints, as for a tool of an extension in Python (`zotd.sdk`). A coroutine
function runs on the event loop of the run, another function in a thread of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, ParamSpec, TypeVar

from zotd.core.ports import Replay, ToolContext, ToolOutcome, ToolSpec
from zotd.core.registry import full_schema, tool_fault
from zotd.embed.in_thread import in_thread
from zotd.exthost.content import outcome_of
from zotd.sdk.answers import tool_error, tool_result
from zotd.sdk.calls import Call
from zotd.sdk.hints import is_coroutine_function
from zotd.sdk.registry import RegisteredTool, make_tool
from zotd.sdk.shapes import ArgumentError
from zotd.wire import ext
from zotd.wire.base import convert

P = ParamSpec("P")
R = TypeVar("R")

Frame = dict[str, object]

log = logging.getLogger(__name__)


class FunctionTool(Generic[P, R]):
    """A function with its name, description and schema for the model. Calling it calls the function.

    Satisfies `core.ports.Tool`.
    """

    extension: str | None = None
    """No extension provides it, so rules and modes treat it like a built-in tool."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool = False,
        parallel: bool = True,
    ) -> None:
        """Describe `function`; its name and docstring are used unless others are given.

        Args:
            function: a parameter `call` without a hint, or with the hint `Call`, gets the `zotd.sdk.Call`.
            name: 1 to 64 letters, digits, `_` and `-`.
            description: what the model reads about it.
            read_only: it changes nothing, so the modes `ask` and `read-only` let it run.
            parallel: it may run at the same time as other tools of one step.

        Raises:
            TypeError: the function cannot be a tool: a parameter has no name, or a hint that JSON cannot express.
        """
        self.function = function
        self.parallel = parallel
        self.replay = Replay.SAFE if read_only else Replay.NEVER
        known_as = name or str(getattr(function, "__name__", ""))
        options: Frame = {} if description is None else {"description": description}
        self._registered = make_tool(function, known_as, options=options, offers_call=True)
        frame = _checked(self._registered)
        self.spec = ToolSpec(frame.name, frame.description, full_schema(frame.schema))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, as if it were none."""
        return self.function(*args, **kwargs)

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """Call the function with these arguments.

        Cancelled, it cancels a coroutine. A thread cannot be stopped: `call.cancelled` tells it, and its result is
        dropped.
        """
        loop = asyncio.get_running_loop()

        def send(frame: Frame) -> None:
            loop.call_soon_threadsafe(context.progress, str(frame["text"]))

        call = Call({"id": context.call_id, "session_id": context.session, "cwd": context.cwd}, send)
        try:
            work = self._registered.bind(dict(args), call)
            # Only creates the coroutine, so it needs no thread.
            value = work() if is_coroutine_function(self.function) else await in_thread(work)
            if isinstance(value, Awaitable):
                value = await value
            answer = tool_result(call.id, value)
        except asyncio.CancelledError:
            call.cancelled = True
            raise
        except ArgumentError as error:
            answer = tool_error(call.id, error)
        except Exception as error:  # the model is told, and may try something else
            log.warning("the tool %s failed", self.spec.name, exc_info=True)
            answer = tool_error(call.id, error)
        return outcome_of(convert(answer, ext.ToolResult), self.spec.name)


def _checked(tool: RegisteredTool) -> ext.RegisterTool:
    """Return the frame that would register the tool; raises TypeError if the model cannot be offered it."""
    frame = convert(tool.frame, ext.RegisterTool)
    fault = tool_fault(frame)
    fault = fault or next(iter(tool.doubts()), None)
    if fault is not None:
        raise TypeError(f"{frame.name or tool.function} cannot be a tool: {fault}")
    return frame


AnyFunctionTool = FunctionTool[..., object]  # type: ignore[explicit-any]  # the parameters are the author's business
