"""Encodes a transcript once, however many model calls it is sent with.

The vendors' SDKs walk and convert every message on every request (measured: 55 ms at 201 messages with one of
them); a run of 200 steps would spend most of its time there.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from zotd.core.ports import ModelRequest, ToolSpec
from zotd.wire.content import Message

T = TypeVar("T")


class EncodedTranscript(Generic[T]):
    """Remembers what each message became; messages are told apart by identity, which they keep in a run."""

    def __init__(self, encode: Callable[[Message, T | None], T]) -> None:
        """`encode` turns one message into what the vendor's request is built of; with what the one before became."""
        self._encode = encode
        self._messages: list[Message] = []
        self._encoded: list[T] = []

    def encoded(self, messages: Sequence[Message]) -> Sequence[T]:
        """What the messages became, in their order; only those that differ from the last call are encoded.

        The result is valid until the next call.
        """
        same = 0
        for known, message in zip(self._messages, messages, strict=False):
            if known is not message:
                break
            same += 1
        del self._messages[same:], self._encoded[same:]
        for message in messages[same:]:
            self._encoded.append(self._encode(message, self._encoded[-1] if self._encoded else None))
            self._messages.append(message)
        return self._encoded


class Preamble:
    """Remembers what system prompt and tools became."""

    def __init__(self, encode: Callable[[ModelRequest], bytes]) -> None:
        """`encode` turns a request's system prompt and tools into fields of the vendor's request."""
        self._encode = encode
        self._system: str | None = None
        self._tools: list[ToolSpec] = []
        self._encoded = b""

    def encoded(self, request: ModelRequest) -> bytes:
        """The fields, comma-separated, each followed by a comma."""
        if request.system != self._system or list(request.tools) != self._tools:
            self._encoded = self._encode(request)
            self._system = request.system
            self._tools = list(request.tools)
        return self._encoded


def parameters(spec: ToolSpec) -> dict[str, object]:
    """The tool's schema as vendors want it: always an object with properties, even when an extension gave none."""
    return {"type": "object", "properties": {}, **spec.schema}
