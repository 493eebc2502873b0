"""A built-in tool: a Struct of arguments and a function, made into what `core.ports.Tool` asks for."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from zotd.core.ports import Replay, ToolContext, ToolOutcome, ToolSpec
from zotd.wire.base import BadFrameError, convert
from zotd.wire.content import Text

TEXT_BYTES = 50 * 1024
"""Longest text of a result, in bytes: some 12,000 tokens."""

TEXT_LINES = 2_000
"""Most lines of a result."""

ABANDON_S = 1.0
"""How long a cancelled tool waits for its thread, which looks at its event far more often. Only a file system that
does not answer takes longer."""

T = TypeVar("T")
A = TypeVar("A", bound=msgspec.Struct)


class ToolError(Exception):
    """A tool cannot do what it was asked to; the message is one sentence for the model."""


class BuiltinTool(Generic[A]):
    """A tool of ours; satisfies `core.ports.Tool`.

    `work` gets decoded arguments. Its `ToolError`, and an `OSError` or `UnicodeEncodeError` of the files it touches,
    become outcomes; any other exception is a bug and passes.
    """

    extension = None

    def __init__(
        self,
        arguments: type[A],
        work: Callable[[A, ToolContext], Awaitable[ToolOutcome]],
        *,
        name: str,
        description: str,
        parallel: bool,
        replay: Replay,
    ) -> None:
        """`arguments`: its fields carry descriptions; a field with a default is optional."""
        self.spec = ToolSpec(name, description, _schema(arguments))
        self.parallel = parallel
        self.replay = replay
        self._arguments = arguments
        self._work = work

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """See `core.ports.Tool.run`; an argument that is null counts as left out."""
        name = self.spec.name
        try:
            given = {key: value for key, value in args.items() if value is not None}
            return await self._work(convert(given, self._arguments), context)
        except BadFrameError as error:
            return text_outcome(f"bad arguments of {name}: {error}", is_error=True)
        except ToolError as error:
            return text_outcome(str(error), is_error=True)
        except UnicodeEncodeError:
            return text_outcome(f"bad arguments of {name}: half of a surrogate pair is not a character", is_error=True)
        except OSError as error:
            return text_outcome(f"cannot {name} {_reason(error)}", is_error=True)


def text_outcome(text: str, *, is_error: bool = False) -> ToolOutcome:
    """An outcome of one text. A file name need not be UTF-8; what JSON cannot carry becomes `?`."""
    return ToolOutcome([Text(text.encode(errors="replace").decode())], is_error)


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """`work`'s result, from a thread, so that a slow disk stops nobody else.

    `work` gets an event that is set when the caller is cancelled and has to return soon after; the caller stays
    for it, so that nothing runs on behind an aborted tool.
    """
    abandoned = threading.Event()
    future = asyncio.get_running_loop().run_in_executor(None, work, abandoned)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        abandoned.set()
        await asyncio.wait([future], timeout=ABANDON_S)
        raise


def _reason(error: OSError) -> str:
    """What and why, without the errno and the quotes of `str(error)`."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else f"the file: {reason}"


def _schema(arguments: type[msgspec.Struct]) -> dict[str, object]:
    """The JSON Schema of a Struct as one object; many models and vendors do not follow a `$ref`."""
    whole: dict[str, object] = msgspec.json.schema(arguments)
    parts = whole["$defs"]
    assert isinstance(parts, dict)
    schema = _inlined(whole, parts)
    assert isinstance(schema, dict)
    del schema["description"]  # the Struct's docstring is for readers of the code
    return schema


def _inlined(node: object, parts: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_inlined(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(parts[str(node["$ref"]).removeprefix("#/$defs/")], parts)
    titled = isinstance(node.get("title"), str)  # a property may be called `title`; its schema is no string
    return {key: _inlined(value, parts) for key, value in node.items() if not (titled and key == "title")}
