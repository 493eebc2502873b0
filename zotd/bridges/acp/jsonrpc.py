"""JSON-RPC 2.0, one message a line, without I/O: lines to messages, messages to lines.

A line that is no message is a `MalformedMessage`, which says how to answer it. Batches are not part of ACP.
"""

from dataclasses import dataclass
from enum import IntEnum

import msgspec

from zotd.wire.base import BadFrameError, Frozen, decode, encode
from zotd.wire.framing import CLIENT_LIMIT, TooLong

Id = str | int | None


class RpcErrorCode(IntEnum):
    """Of an error: JSON-RPC 2.0 section 5.1, and what ACP adds."""

    PARSE = -32700
    REQUEST = -32600
    METHOD = -32601
    PARAMS = -32602
    INTERNAL = -32603
    AUTH = -32000
    """There is no key for the model: the editor shows how to log in."""
    NOT_FOUND = -32002


class RpcError(Exception):
    """A request failed in a way that its sender should read."""

    def __init__(self, code: RpcErrorCode, sentence: str) -> None:
        """Keep `code` for programs and `sentence` for people."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """Wants an answer with its id; `params` is JSON."""

    id: Id
    method: str
    params: bytes


@dataclass(frozen=True, slots=True)
class Notification:
    """Wants none."""

    method: str
    params: bytes


@dataclass(frozen=True, slots=True)
class RpcResponse:
    """To a request of ours: its result as JSON, or the sentence of its error."""

    id: Id
    result: bytes | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """A line that is no message."""

    code: RpcErrorCode
    sentence: str
    id: Id = None


class ErrorObject(Frozen, frozen=True):
    """Why a request failed."""

    code: int
    message: str


class _Envelope(Frozen, frozen=True):
    jsonrpc: str = ""
    id: str | int | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: ErrorObject | msgspec.UnsetType | None = msgspec.UNSET
    """None: as if it were absent; some libraries put it beside a result."""


def parsed(line: bytes | TooLong) -> RpcRequest | Notification | RpcResponse | MalformedMessage:
    """What a line says."""
    if isinstance(line, TooLong):
        return MalformedMessage(RpcErrorCode.REQUEST, f"the line is longer than {CLIENT_LIMIT} bytes")
    try:
        envelope = decode(line, _Envelope)
    except BadFrameError as error:
        is_json = isinstance(error.__cause__, msgspec.ValidationError)
        return MalformedMessage(RpcErrorCode.REQUEST if is_json else RpcErrorCode.PARSE, str(error))
    return _message(envelope)


def _message(envelope: _Envelope) -> RpcRequest | Notification | RpcResponse | MalformedMessage:
    given = None if envelope.id is msgspec.UNSET else envelope.id
    if envelope.jsonrpc != "2.0":
        return MalformedMessage(RpcErrorCode.REQUEST, 'the field `jsonrpc` must be "2.0"', given)
    params = bytes(envelope.params) or b"{}"
    if isinstance(envelope.method, str):
        if envelope.id is msgspec.UNSET:
            return Notification(envelope.method, params)
        return RpcRequest(given, envelope.method, params)
    if isinstance(envelope.error, ErrorObject):
        return RpcResponse(given, None, envelope.error.message)
    if bytes(envelope.result):
        return RpcResponse(given, bytes(envelope.result))
    return MalformedMessage(
        RpcErrorCode.REQUEST, "neither a request nor an answer: `method`, `result` and `error` are missing", given
    )


# --- what we send: `jsonrpc` is the tag, because a field with a default would be left out ---------------------------


class _Result(Frozen, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Frozen


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


def result_line(request: Id, result: Frozen) -> bytes:
    """The answer to a request that was carried out."""
    return encode(_Result(request, result)) + b"\n"


def failure_line(request: Id, code: RpcErrorCode, sentence: str) -> bytes:
    """The answer to one that was not."""
    return encode(_Failure(request, ErrorObject(int(code), sentence))) + b"\n"


def request_line(request: Id, method: str, params: Frozen) -> bytes:
    """A request of ours."""
    return encode(_Call(request, method, params)) + b"\n"


def notification_line(method: str, params: Frozen) -> bytes:
    """Something that nobody answers."""
    return encode(_Notice(method, params)) + b"\n"
