"""`Extension`, the public interface of the SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, overload

from .calls import HostCall
from .hints import description, parameter_names
from .panel import Panel
from .peer import HostPeer
from .pipe import log, print_to_log
from .registry import TOOL_OPTIONS, RegisteredCommand, make_tool
from .shapes import Function, Schema
from .values import HelloAck
from .work import origin

F = TypeVar("F", bound=Function)

LEVELS = ("info", "success", "warn", "error")


class Extension:  # noqa: PLR0904  one object with everything is easiest for authors
    """An extension of zot: register functions, then `run()`.

    Functions may be registered at any time, also while the extension runs, and from any thread. A name that is
    registered again replaces the earlier function. `async def` functions run on one event loop, plain ones in threads.
    """

    def __init__(self, name: str, version: str = "0.0.0") -> None:
        """Create an extension. From here on, `print` writes to stderr, which is the extension's log."""
        # As early as possible: a print during the import of the extension would break the protocol.
        print_to_log()
        self._peer = HostPeer(name, version)

    @property
    def hello(self) -> HelloAck:
        """The host's `hello_ack`; empty until it has arrived."""
        return self._peer.hello

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Schema | None = None,
        replay: str = "never",
        parallel: bool = True,
        **options: object,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Schema | None = None,
        replay: str = "never",
        parallel: bool = True,
        **options: object,
    ) -> F | Callable[[F], F]:
        """Register a tool for the model: `@ext.tool` or `@ext.tool(…)`.

        The function's name, docstring and type hints are the tool's name, description and schema, unless given. It
        returns text, a `Result`, an `Image` or any JSON value; an exception is reported to the model as an error. A
        parameter `call` gets the `Call`. A hint that is not supported is told on stderr, and the model may send anything
        for it. With a `schema` of your own, arguments are passed by name and unchecked.

        `replay` says what recovery may do: `never`, `safe`, `idempotent` or `reconcile`. With `parallel=False`, calls
        run one after another. `options`: `output_schema`, `namespace`, `exposure`, `deferred`, `interactive`.

        Raises:
            TypeError: an unknown option, or a function with parameters that have no name.
        """
        unknown = options.keys() - TOOL_OPTIONS
        if unknown:
            raise TypeError(
                f"a tool has no option {', '.join(sorted(unknown))}; there are {', '.join(sorted(TOOL_OPTIONS))}"
            )
        options.update(replay=replay, parallel=parallel)
        if description is not None:
            options["description"] = description

        def register(function: F) -> F:
            tool = make_tool(function, name or function.__name__, schema=schema, options=options, offers_call=True)
            for doubt in tool.doubts():
                log(f"the tool {name or function.__name__}: {doubt}; the model may send anything")
            self._peer.registry.tools[name or function.__name__] = tool
            # Before `run` the pipe queues the frame; later the host learns about the tool at once.
            self._peer.pipe.send(tool.frame)
            return function

        return register if function is None else register(function)

    def command(self, name: str, description: str | None = None) -> Callable[[F], F]:
        """Register the slash command `/name`: `@ext.command("name")`.

        The function gets the text after the name, and the `CommandCall` if it has a parameter `call`. It returns
        text to display, `Prompt`, `Insert`, `Display`, `Noop` or `OpenPanel`; an exception is shown as an error.
        """

        def register(function: F) -> F:
            # Raises TypeError here, where the author sees the line, rather than at the first call.
            parameter_names(function)
            text = _first_line(function) if description is None else description
            command = RegisteredCommand(function, {"type": "register_command", "name": name, "description": text})
            self._peer.registry.commands[name] = command
            self._peer.pipe.send(command.frame)
            return function

        return register

    def on(self, event: str) -> Callable[[F], F]:
        """Subscribe to an `Event`: `@ext.on("turn_end")`. Handlers run one after another, in the order of the events."""

        def register(function: F) -> F:
            parameter_names(function)
            self._peer.registry.handlers.setdefault(event, []).append(function)
            self._peer.pipe.send({"type": "subscribe", "events": [event], "intercept": []})
            return function

        return register

    def guard(self, event: str) -> Callable[[F], F]:
        """Decide about an `Event` before it happens: `@ext.guard("tool_call")`.

        The function returns None to allow, or a `Decision`. If it raises, the manifest's `on_failure` decides.
        """

        def register(function: F) -> F:
            parameter_names(function)
            self._peer.registry.guards[event] = function
            self._peer.pipe.send({"type": "subscribe", "events": [], "intercept": [event]})
            return function

        return register

    def on_hello(self, function: F) -> F:
        """Run a function once after the host's `hello_ack`, which it gets: `@ext.on_hello`.

        Its registrations are available from the start, and no call is handled before it has returned.
        """
        self._peer.registry.run_on_hello(function)
        return function

    def unregister(self, kind: str, name: str) -> None:
        """Remove a registered `tool` or `command`."""
        if kind == "tool":
            self._peer.registry.tools.pop(name, None)
        elif kind == "command":
            self._peer.registry.commands.pop(name, None)
        else:
            raise ValueError(f"cannot take back a {kind!r}: tools and commands can be taken back")
        self._peer.pipe.send({"type": "unregister", "kind": kind, "name": name})

    def run(self) -> None:
        """Serve until the host sends `shutdown` or closes stdin; handlers then have 1.5 s to finish.

        stdin and stdout are then used by the protocol; child processes inherit neither.
        """
        self._peer.run()

    def notify(self, level: str, text: str, *, session_id: str = "") -> None:
        """Show a note below the transcript: `info`, `success`, `warn` or `error`.

        This and the following methods apply to the session whose call is being answered, unless one is named. In a
        thread or task that the extension started itself, they apply to all sessions of the workspace.
        """
        if level not in LEVELS:
            raise ValueError(f"a note has no level {level!r}; there are {', '.join(LEVELS)}")
        self._peer.say("notify", session_id, level=level, message=text)

    def clear_notes(self, *, session_id: str = "") -> None:
        """Remove the notes of this extension."""
        self._peer.say("clear_notes", session_id)

    def submit(self, text: str, *, session_id: str = "") -> None:
        """Queue a prompt in the session; text that begins with `/` runs that slash command."""
        self._peer.say("submit_slash" if text.startswith("/") else "submit", session_id, text=text)

    def set_status(self, key: str, text: str, *, session_id: str = "") -> None:
        """Show a segment of the status bar; empty text removes it."""
        self._peer.say("set_status", session_id, key=key, text=text)

    def open_panel(self, panel: Panel, *, session_id: str = "") -> None:
        """Open a panel; a command opens one by returning `OpenPanel(panel)`."""
        self._peer.show(panel)
        self._peer.say("open_panel", session_id, panel=panel.content())

    def call_tool(self, name: str, args: Mapping[str, object] | None = None) -> HostCall:
        """Ask the host to run a tool, subject to guards and approvals. `await` it, or call `.result()` in a thread.

        A failed tool returns a `Result` with `is_error`; nothing is raised.
        """
        # The call that is being answered becomes the parent, so that the host can follow the chain.
        return self._peer.calls.start(name, args or {}, origin.get())

    def log(self, text: str) -> None:
        """Write a line to the extension's log."""
        log(text)


def _first_line(function: Function) -> str:
    return description(function).partition("\n")[0]
