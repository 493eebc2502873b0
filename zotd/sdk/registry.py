"""The tools, commands, event handlers, guards and panels of an extension, with the frames that register them."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .calls import Call, CommandCall
from .hints import SUPPORTED, description, parameter_names, parameters
from .panel import Panel
from .pipe import Frame
from .shapes import ArgumentError, Function, ObjectShape, Schema
from .work import FunctionRun

TOOL_OPTIONS = frozenset({"output_schema", "namespace", "exposure", "deferred", "interactive"})
"""Fields of `register_tool` that are passed on unchanged (`docs/extensions.md`)."""

CAPABILITIES = ("tool_cancel", "tool_progress", "call_tool", "ui")
"""Capabilities of this SDK, announced in `hello` in addition to those of the extension."""


class RegisteredTool(NamedTuple):
    """A tool, with the frame that registers it."""

    function: Function
    frame: Frame
    """The `register_tool` frame."""
    arguments: ObjectShape | None
    """None if the author supplied the schema; arguments are then passed on unchecked."""
    takes_call: bool
    lane: deque[FunctionRun] | None
    """Set for `parallel=False`, to run its calls one after another."""

    def doubts(self) -> list[str]:
        """Return a sentence for each parameter whose hint is not supported."""
        hints = {} if self.arguments is None else self.arguments.undescribed()
        return [
            f"parameter {name} has the hint {hint}, which JSON cannot express; {SUPPORTED}"
            for name, hint in hints.items()
        ]

    def bind(self, args: object, call: Call) -> Callable[[], object]:
        """Bind the function to the arguments of a call.

        Raises:
            ArgumentError: the arguments do not fit the function's hints.
        """
        if not isinstance(args, dict):
            raise ArgumentError(f"the arguments must be an object, not {args!r}")
        named = dict(args) if self.arguments is None else self.arguments.members(args)
        if self.takes_call:
            # The parameter is not part of the schema, so a model cannot have sent it.
            named["call"] = call
        return functools.partial(self.function, **named)


class RegisteredCommand(NamedTuple):
    """A slash command, with the frame that registers it."""

    function: Function
    frame: Frame

    def bind(self, args: str, call: CommandCall) -> Callable[[], object]:
        """Bind the function to the text after the command's name, and to `call` if it has that parameter."""
        bound = with_values(self.function, args)
        return functools.partial(bound, call=call) if "call" in parameter_names(self.function) else bound


class Registry:
    """Everything that an extension offers. Registering a name again replaces the earlier function."""

    def __init__(self) -> None:
        self.tools: dict[str, RegisteredTool] = {}
        self.commands: dict[str, RegisteredCommand] = {}
        self.handlers: dict[str, list[Function]] = {}
        self.guards: dict[str, Function] = {}
        self.panels: dict[str, Panel] = {}
        self.on_hello: Function | None = None

    def run_on_hello(self, function: Function) -> None:
        """Run `function` after `hello_ack`."""
        self.on_hello = function

    def capabilities(self) -> list[str]:
        """Return the capabilities for the frame `hello`."""
        offered = {
            "commands": self.commands,
            "tools": self.tools,
            "events": self.handlers or self.guards,
            "panels": True,
        }
        return [name for name, there in offered.items() if there] + list(CAPABILITIES)

    def functions(self) -> list[Function]:
        """Return all functions of the author that the host may call."""
        offered = [tool.function for tool in self.tools.values()]
        offered += [command.function for command in self.commands.values()]
        offered += [handler for handlers in self.handlers.values() for handler in handlers]
        return offered + list(self.guards.values()) + ([self.on_hello] if self.on_hello else [])


def make_tool(
    function: Function, name: str, *, schema: Schema | None = None, options: Mapping[str, object], offers_call: bool
) -> RegisteredTool:
    """Make a tool from a function.

    Args:
        function: called with named arguments.
        name: of the tool.
        schema: of the arguments; None: derived from the type hints.
        options: further fields of `register_tool`.
        offers_call: a parameter `call` gets the `Call`.

    Raises:
        TypeError: the function has parameters that cannot be named.
    """
    arguments = None
    if schema is None:
        arguments = parameters(function)
        # `call: str` is an ordinary argument; `call` and `call: Call` are the call itself.
        takes_call = offers_call and any(field.name == "call" and not field.shape.schema for field in arguments.fields)
        if takes_call:
            arguments = ObjectShape([field for field in arguments.fields if field.name != "call"])
        schema = arguments.schema()
    else:
        properties = schema.get("properties")
        is_argument = isinstance(properties, dict) and "call" in properties
        takes_call = "call" in parameter_names(function) and not is_argument
    frame: Frame = {"type": "register_tool", "name": name, "description": description(function), "schema": schema}
    undescribed = arguments.undescribed() if arguments else {}
    if undescribed:
        frame["undescribed"] = undescribed
    # Last, so that explicit options override values derived from the function.
    frame.update(options)
    lane: deque[FunctionRun] | None = deque() if options.get("parallel") is False else None
    return RegisteredTool(function, frame, arguments, takes_call, lane)


def with_values(function: Function, *values: object) -> Function:
    """Bind a function to as many of the values as it has parameters, `call` not counted.

    A handler may therefore leave out parameters that it does not need.

    Raises:
        TypeError: it is not a Python function.
    """
    names = [name for name in parameter_names(function) if name != "call"]
    return functools.partial(function, **dict(zip(names, values)))
