"""Tools that are functions of this program."""

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, overload

from zot.errors import OptionError
from zotd.embed.function_tool import AnyFunctionTool, FunctionTool
from zotd.sdk.calls import Call
from zotd.sdk.shapes import Function
from zotd.sdk.values import Image

__all__ = ["Call", "Image", "as_tools", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, read_only: bool = False, parallel: bool = True
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    parallel: bool = True,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: `@tool` or `@tool(…)`. Without options, `Agent(tools=[function])` does the same.

    Its name, docstring and type hints are the tool's name, description and schema. It returns text, an `Image` or any JSON
    value; an exception is told to the model. `async def` functions run on the agent's event loop, others in a thread.
    A parameter `call` gets the `Call`: `call.progress(text)`, `call.cancelled`, `call.cwd`.

    Args:
        function: what the model may call.
        name: 1 to 64 letters, digits, `_` and `-`.
        description: what the model reads about it, instead of the docstring.
        read_only: it changes nothing, so the modes `ask` and `read-only` let it run.
        parallel: it may run at the same time as other tools of one step.

    Raises:
        TypeError: a parameter has no name, or a hint that JSON cannot express.
    """

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(function, name=name, description=description, read_only=read_only, parallel=parallel)

    return make if function is None else make(function)


def as_tools(functions: Sequence[Function], builtin: Sequence[str]) -> list[AnyFunctionTool]:
    """Return the tools of these functions; raises OptionError if two have one name, or one that a built-in tool has."""
    tools: dict[str, AnyFunctionTool] = {}
    for function in functions:
        made = function if isinstance(function, FunctionTool) else FunctionTool(function)
        name = made.spec.name
        if name in tools or name in builtin:
            owner = "another function" if name in tools else "a built-in tool"
            raise OptionError(f'tools: {owner} is called "{name}"; name yours with @tool(name=…)')
        tools[name] = made
    return list(tools.values())
