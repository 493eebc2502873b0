"""Adapts a function with a Struct of arguments to `core.ports.Tool`."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from zotd.core.ports import Replay, ToolContext, ToolOutcome, ToolSpec
from zotd.decodable import decodable
from zotd.jail.errors import JailError
from zotd.wire.base import sentence
from zotd.wire.content import Text

TEXT_BYTES = 50 * 1024
"""Longest text of a result in bytes, about 12,000 tokens."""

TEXT_LINES = 2_000
"""Limit of lines in a result."""

ABANDON_S = 1.0
"""How long a cancelled tool waits for its thread. Threads check their event far more often; only a file system that does
not answer takes longer."""

T = TypeVar("T")
A = TypeVar("A", bound=msgspec.Struct)


class ToolError(Exception):
    """A call failed; the message is one sentence for the model."""


class BuiltinTool(Generic[A]):
    """A built-in tool; satisfies `core.ports.Tool`.

    `work` gets decoded arguments. Its ToolError, JailError, OSError and UnicodeEncodeError become outcomes; any other
    exception is a bug and propagates.
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
        """Make a tool. `arguments` has fields with descriptions; fields with a default are optional."""
        self.spec = ToolSpec(name, description, _schema(arguments))
        self.parallel = parallel
        self.replay = replay
        self._arguments = decodable(arguments)
        self._work = work

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:
        """See `core.ports.Tool.run`. Arguments that are null count as missing."""
        name = self.spec.name
        try:
            # Some models send null for every optional argument.
            given = msgspec.convert({key: value for key, value in args.items() if value is not None}, self._arguments)
        except (msgspec.MsgspecError, RecursionError) as error:
            return text_outcome(f"bad arguments of {name}: {sentence(error)}", is_error=True)
        try:
            return await self._work(given, context)
        except ToolError as error:
            return text_outcome(str(error), is_error=True)
        # JSON can carry half of a surrogate pair, but neither UTF-8 files nor paths can.
        except UnicodeEncodeError:
            return text_outcome(f"bad arguments of {name}: half of a surrogate pair is not a character", is_error=True)
        except JailError as error:
            text = f"{name} was not run, because it could not be confined ({error}); tell the user"
            return text_outcome(text, is_error=True)
        except OSError as error:
            return text_outcome(f"cannot {name} {_reason(error)}", is_error=True)


def text_outcome(text: str, *, is_error: bool = False) -> ToolOutcome:
    """Return an outcome with one text. Bytes of file names that are not UTF-8 become `?`, because JSON cannot hold them."""
    return ToolOutcome([Text(text.encode(errors="replace").decode())], is_error)


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Run `work` in a thread, so that a slow disk does not block the event loop.

    `work` gets an event that is set when the caller is cancelled, and has to return soon after. The caller waits for that,
    so that no work continues after an aborted tool.
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
    """Return file and reason without the errno and the quotes of `str(error)`."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else f"the file: {reason}"


def _schema(arguments: type[msgspec.Struct]) -> dict[str, object]:
    """Return the JSON Schema of a Struct without `$ref`, which many models and vendors do not follow."""
    whole: dict[str, object] = msgspec.json.schema(arguments)
    parts = whole["$defs"]
    assert isinstance(parts, dict)
    schema = _inlined(whole, parts)
    assert isinstance(schema, dict)
    del schema["description"]  # the Struct's docstring is not for models
    return schema


def _inlined(node: object, parts: Mapping[str, object]) -> object:
    if isinstance(node, list):
        return [_inlined(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(parts[str(node["$ref"]).removeprefix("#/$defs/")], parts)
    titled = isinstance(node.get("title"), str)  # a property may be named `title`; its schema is not a string
    return {key: _inlined(value, parts) for key, value in node.items() if not (titled and key == "title")}
