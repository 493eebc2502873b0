"""Parses and writes messages of JSON-RPC 2.0, without I/O and without framing: ACP and language servers differ in that.

An invalid message becomes a `MalformedMessage`, which contains the error to answer with. Batches are part of neither.
"""

from dataclasses import dataclass
from enum import IntEnum

import msgspec

from zotd.wire.base import BadFrameError, Frozen, decode, encode
from zotd.wire.framing import CLIENT_LIMIT, TooLong

Id = str | int | None

DETAILS = ("details", "message", "error", "reason")
"""Members of an error's `data` that usually say why."""


class RpcErrorCode(IntEnum):
    """Error codes of JSON-RPC 2.0 (section 5.1) and of ACP."""

    PARSE = -32700
    REQUEST = -32600
    METHOD = -32601
    PARAMS = -32602
    INTERNAL = -32603
    AUTH = -32000
    """There is no key for the model; the editor shows how to log in."""
    NOT_FOUND = -32002


class RpcError(Exception):
    """A request failed; the sender gets code and message."""

    def __init__(self, code: RpcErrorCode, sentence: str) -> None:
        """Keep `code` for programs and `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A request, to be answered under its id. `params` is JSON."""

    id: Id
    method: str
    params: bytes


@dataclass(frozen=True, slots=True)
class Notification:
    """A message without an answer."""

    method: str
    params: bytes


@dataclass(frozen=True, slots=True)
class RpcResponse:
    """The answer to one of our requests: its result as JSON, or its error."""

    id: Id
    result: bytes | None
    error: str = ""
    code: int = 0
    """Code of the error."""


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """An invalid message, and how to answer it."""

    code: RpcErrorCode
    sentence: str
    id: Id = None


class ErrorObject(Frozen, frozen=True):
    """The `error` member of a response."""

    code: int
    message: str
    data: object = None


class _Envelope(Frozen, frozen=True):
    jsonrpc: str = ""
    id: str | int | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: ErrorObject | msgspec.UnsetType | None = msgspec.UNSET
    """None counts as absent, because some libraries send it beside a result."""


def parsed(message: bytes | TooLong) -> RpcRequest | Notification | RpcResponse | MalformedMessage:
    """Parse one message; `TooLong` stands for a line over `CLIENT_LIMIT`."""
    if isinstance(message, TooLong):
        return MalformedMessage(RpcErrorCode.REQUEST, f"the line is longer than {CLIENT_LIMIT} bytes")
    try:
        envelope = decode(message, _Envelope)
    except BadFrameError as error:
        # The two codes tell the author of an editor whether the JSON or the message is wrong.
        is_json = isinstance(error.__cause__, msgspec.ValidationError)
        return MalformedMessage(RpcErrorCode.REQUEST if is_json else RpcErrorCode.PARSE, str(error))
    return _message(envelope)


def _message(envelope: _Envelope) -> RpcRequest | Notification | RpcResponse | MalformedMessage:
    given = None if envelope.id is msgspec.UNSET else envelope.id
    if envelope.jsonrpc != "2.0":
        return MalformedMessage(RpcErrorCode.REQUEST, 'the field `jsonrpc` must be "2.0"', given)
    # Requests without parameters may omit the member.
    params = bytes(envelope.params) or b"{}"
    if isinstance(envelope.method, str):
        if envelope.id is msgspec.UNSET:
            return Notification(envelope.method, params)
        return RpcRequest(given, envelope.method, params)
    if isinstance(envelope.error, ErrorObject):
        return RpcResponse(given, None, _words(envelope.error), envelope.error.code)
    if bytes(envelope.result):
        return RpcResponse(given, bytes(envelope.result))
    return MalformedMessage(
        RpcErrorCode.REQUEST, "neither a request nor an answer: `method`, `result` and `error` are missing", given
    )


def _words(error: ErrorObject) -> str:
    """Return the message with what `data` says of it: some programs put the reason only there."""
    data = error.data
    found = (data.get(name) for name in DETAILS) if isinstance(data, dict) else (data,)
    return ": ".join([error.message, *[word for word in found if isinstance(word, str)][:1]])


# --- outgoing messages: `jsonrpc` is the tag, because a field with a default would be left out ---------------------------


class _Result(Frozen, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: object


class _Failure(Frozen, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    error: ErrorObject


class _Call(Frozen, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    method: str
    params: Frozen


class _Notice(Frozen, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Frozen


def result_message(request: Id, result: object) -> bytes:
    """Encode the successful answer to a request."""
    return encode(_Result(request, result))


def failure_message(request: Id, code: RpcErrorCode, sentence: str) -> bytes:
    """Encode the error for a failed request."""
    return encode(_Failure(request, ErrorObject(int(code), sentence)))


def request_message(request: Id, method: str, params: Frozen) -> bytes:
    """Encode a request."""
    return encode(_Call(request, method, params))


def notification_message(method: str, params: Frozen) -> bytes:
    """Encode a notification, which has no answer."""
    return encode(_Notice(method, params))
