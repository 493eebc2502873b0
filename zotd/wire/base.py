"""Base class of all frames, and the two functions that decode them.

No I/O. Unknown fields are ignored, because within protocol 1 fields are only added (`docs/protocol.md`). Optional
fields are omitted from the encoded frame if they have their default.
"""

from typing import TypeVar

import msgspec

from zotd.decodable import decodable


class Frozen(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that crosses a process border."""


class BadFrameError(ValueError):
    """Bytes that are not the JSON object that was expected; the message is one sentence for the sender."""


T = TypeVar("T")

ENCODER = msgspec.json.Encoder()
"""Encodes any Struct, or a list of them as NDJSON (`encode_lines`); stateless and shared."""


def encode(value: object) -> bytes:
    """The value as one JSON text without a newline."""
    return ENCODER.encode(value)


def decode(data: bytes, kind: type[T]) -> T:
    """`data` as a `kind`.

    Raises:
        BadFrameError: not UTF-8, not JSON, too deep, or not of that shape; names the offending field.
    """
    try:
        data.decode()  # msgspec does not check the encoding of fields that it skips
        return msgspec.json.decode(data, type=decodable(kind))
    except RecursionError as error:
        raise BadFrameError("the JSON is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise BadFrameError(f"not UTF-8: {error.reason} (byte {error.start})") from error
    except msgspec.MsgspecError as error:
        raise BadFrameError(sentence(error)) from error


def convert(value: object, kind: type[T]) -> T:
    """An already decoded JSON value as a `kind`; raises like `decode`."""
    try:
        return msgspec.convert(value, decodable(kind))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadFrameError(sentence(error)) from error


def sentence(error: Exception) -> str:
    """What msgspec has against a value, as a sentence for the sender; names the offending field."""
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        return text[:1].lower() + text[1:].replace(" - at `$.", " in `").replace(" - at `$`", "")
    return "malformed JSON: " + text.removeprefix("JSON is malformed: ")
