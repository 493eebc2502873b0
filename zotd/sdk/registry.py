"""What an extension offers: its tools, commands, event handlers, guards and panels, each with the frame that tells so."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .calls import Call, CommandCall
from .hints import description, parameter_names, parameters
from .panel import Panel
from .pipe import Frame
from .shapes import ArgumentError, Function, ObjectShape, Schema
from .work import FunctionRun

TOOL_OPTIONS = frozenset({"output_schema", "namespace", "exposure", "deferred", "interactive"})
"""Fields of `register_tool` that are passed on as they are (`docs/extensions.md`)."""

CAPABILITIES = ("tool_cancel", "tool_progress", "call_tool", "ui")
"""What this SDK always can; `hello` announces it beside what the extension has registered."""


class RegisteredTool(NamedTuple):
    """A tool for the model."""

    function: Function
    frame: Frame
    """That registers it."""
    arguments: ObjectShape | None
    """None if the author wrote the schema: then arguments are passed on unchecked."""
    takes_call: bool
    lane: deque[FunctionRun] | None
    """For `parallel=False`: its calls run one after another."""

    def bind(self, args: object, call: Call) -> Callable[[], object]:
        """The function with the arguments of one call.

        Raises:
            ArgumentError: they don't fit the function's hints.
        """
        if not isinstance(args, dict):
            raise ArgumentError(f"the arguments must be an object, not {args!r}")
        named = dict(args) if self.arguments is None else self.arguments.members(args)
        if self.takes_call:
            named["call"] = call
        return functools.partial(self.function, **named)


class RegisteredCommand(NamedTuple):
    """A slash command."""

    function: Function
    frame: Frame

    def bind(self, args: str, call: CommandCall) -> Callable[[], object]:
        """The function with what was typed after the command's name, and with `call` if it takes that."""
        bound = with_values(self.function, args)
        return functools.partial(bound, call=call) if "call" in parameter_names(self.function) else bound


class Registry:
    """All that an extension offers; a name that is registered again replaces the earlier one."""

    def __init__(self) -> None:
        self.tools: dict[str, RegisteredTool] = {}
        self.commands: dict[str, RegisteredCommand] = {}
        self.handlers: dict[str, list[Function]] = {}
        self.guards: dict[str, Function] = {}
        self.panels: dict[str, Panel] = {}
        self.on_hello: Function | None = None

    def capabilities(self) -> list[str]:
        """For the frame `hello`."""
        offered = {
            "commands": self.commands,
            "tools": self.tools,
            "events": self.handlers or self.guards,
            "panels": True,
        }
        return [name for name, there in offered.items() if there] + list(CAPABILITIES)

    def functions(self) -> list[Function]:
        """All of the author's functions that the host may cause to run."""
        offered = [tool.function for tool in self.tools.values()]
        offered += [command.function for command in self.commands.values()]
        offered += [handler for handlers in self.handlers.values() for handler in handlers]
        return offered + list(self.guards.values()) + ([self.on_hello] if self.on_hello else [])


def make_tool(
    function: Function, name: str, *, schema: Schema | None = None, options: Mapping[str, object], offers_call: bool
) -> RegisteredTool:
    """A tool from a function; `options` are further fields of `register_tool`, `offers_call`: a parameter may be `call`.

    Raises:
        TypeError: the function takes parameters that have no name.
    """
    arguments = None
    if schema is None:
        arguments = parameters(function)
        # `call: str` is an argument like any other; `call` and `call: Call` are the call itself.
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
    frame.update(options)
    lane: deque[FunctionRun] | None = deque() if options.get("parallel") is False else None
    return RegisteredTool(function, frame, arguments, takes_call, lane)


def with_values(function: Function, *values: object) -> Function:
    """The function with as many of the values as it has parameters, `call` not counted.

    Raises:
        TypeError: it is no Python function.
    """
    names = [name for name in parameter_names(function) if name != "call"]
    return functools.partial(function, **dict(zip(names, values)))
