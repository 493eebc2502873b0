"""Typed frames of the daemon's carriers, without I/O: requests to bytes, bytes to events and answers.

A whole chunk of lines is decoded in one call of the decoder: one line at a time costs twice as much per delta.
"""

import logging

import msgspec

from zotd.client.errors import CallError, ConnectionLostError, NotTextError
from zotd.wire import api, base, events
from zotd.wire.base import Frozen

log = logging.getLogger(__name__)


class ResponseFrame(Frozen, tag_field="type", tag="response", frozen=True):
    """A response (`wire.api.Response`) whose `data` is not decoded yet, because its type depends on the command."""

    success: bool
    id: str | int | None = None
    data: msgspec.Raw = msgspec.Raw()
    error: str = "the command failed"
    code: str = "internal"

    @property
    def is_of_unread_line(self) -> bool:
        """Whether the daemon could not parse a line, and therefore does not know its id."""
        return not self.success and self.id is None


Frame = events.AnyEvent | ResponseFrame

_DECODER = msgspec.json.Decoder(Frame)


def decode(block: bytes) -> list[Frame]:
    """Decode `block`, which consists of whole lines. Frames of unknown type are omitted.

    A newer daemon may send such events within protocol 1. Raises `ConnectionLostError` if it is not JSON.
    """
    try:
        return _DECODER.decode_lines(block)
    except msgspec.ValidationError:
        return [frame for line in block.split(b"\n") if line for frame in _decode_line(line)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ConnectionLostError("the daemon sent a line that is not JSON: is it zotd?") from error


def _decode_line(line: bytes) -> list[Frame]:
    try:
        return [_DECODER.decode(line)]
    except msgspec.ValidationError as error:
        log.debug("a frame was skipped: %s", error)
        return []


def encode_request(command: str, request_id: int, params: Frozen) -> bytes:
    """Return the line of a request, without its newline. Raises `NotTextError`."""
    try:
        body = base.encode(params)
    except UnicodeEncodeError as error:
        raise NotTextError(f"the request {command}", error.object) from error
    head = b'{"type":"%b","id":%d' % (command.encode(), request_id)
    return head + (b"}" if body == b"{}" else b"," + body[1:])


def unpack(answer: ResponseFrame, command: str) -> Frozen:
    """Return the response's data as the Struct that the command table names; `api.Nothing` for a command without data.

    Raises `CallError` if the command failed.
    """
    if not answer.success:
        raise CallError(answer.code, answer.error)
    result = api.BY_NAME[command].result
    if result is None:
        return api.Nothing()
    try:
        return base.decode(bytes(answer.data), result)
    except base.BadFrameError as error:
        raise CallError("internal", f"the daemon answered `{command}` with invalid data: {error}") from error


def command_for(params: Frozen, command: str | None) -> str:
    """Return the command that takes `params`. If several commands share the Struct, `command` has to name it.

    Raises:
        ValueError: no command takes them, `command` does not, or several do and none is named.
    """
    names = _COMMANDS_OF.get(type(params), [])
    kind = type(params).__name__
    if command is not None:
        if command not in names:
            raise ValueError(f"`{command}` does not take {kind}; see zotd.wire.api.COMMANDS")
        return command
    if len(names) != 1:
        raise ValueError(f"{kind} belongs to {len(names)} commands: name one of {', '.join(names)}")
    return names[0]


def _by_params() -> dict[type[Frozen], list[str]]:
    table: dict[type[Frozen], list[str]] = {}
    for row in api.COMMANDS:
        table.setdefault(row.params, []).append(row.name)
    return table


_COMMANDS_OF = _by_params()
