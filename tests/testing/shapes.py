"""Whether what the scripted server sends is what the vendors send: judged by the SDKs' own types, strictly.

A field that is missing or has another type is an error of pydantic; a field that the type does not have is found in
`model_extra`, because the SDKs' classes allow any.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import ollama
from anthropic.types import ErrorResponse, RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from openai.types.shared import ErrorObject
from pydantic import BaseModel, TypeAdapter

from zotd.testing.dialects import Dialect, Json, Piece
from zotd.testing.model_server import DIALECTS
from zotd.testing.script import Refusal, ScriptedReply

OF_IMITATORS = {"delta.reasoning_content", "tool_calls.extra_content"}
"""Fields of Chat Completions that OpenAI's types do not have: DeepSeek's and Moonshot's reasoning, Gemini's signatures."""


OF_NEWER_OLLAMA = {".prompt_eval_cached_count", "tool_calls.id", "function.index"}
"""Fields that Ollama sends and the types of its client do not have yet."""


def unknown_fields(value: object, place: str = "") -> Iterator[str]:
    """Fields that the SDK's types do not have, each behind the field that it is in."""
    if isinstance(value, BaseModel):
        yield from (f"{place}.{name}" for name in value.model_extra or ())
        for name, inner in value:
            yield from unknown_fields(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from unknown_fields(inner, place)


def check(kind: TypeAdapter[object], data: bytes) -> None:
    """Raise unless these are JSON of exactly that type."""
    found = kind.validate_json(data, strict=True)
    unknown = {*unknown_fields(found)} - OF_IMITATORS
    assert not unknown, f"{unknown} in {data!r}"


_MESSAGES: TypeAdapter[object] = TypeAdapter(RawMessageStreamEvent)
_MESSAGES_ERROR: TypeAdapter[object] = TypeAdapter(ErrorResponse)
_CHUNK: TypeAdapter[object] = TypeAdapter(ChatCompletionChunk)
_RESPONSES: TypeAdapter[object] = TypeAdapter(ResponseStreamEvent)
_ERROR: TypeAdapter[object] = TypeAdapter(ErrorObject)


def check_messages(piece: bytes) -> None:
    """An event of Anthropic's Messages."""
    name, _, data = piece.removesuffix(b"\n\n").partition(b"\ndata: ")
    assert name == b"event: " + json.loads(data)["type"].encode()
    check(_MESSAGES_ERROR if name == b"event: error" else _MESSAGES, data)


def check_chat(piece: bytes) -> None:
    """A chunk of Chat Completions."""
    data = piece.removeprefix(b"data: ").removesuffix(b"\n\n")
    if data == b"[DONE]":
        return
    body = json.loads(data)
    if "error" in body:
        check_error(body)
    else:
        check(_CHUNK, data)


def check_responses(piece: bytes) -> None:
    """An event of Responses."""
    name, _, data = piece.removesuffix(b"\n\n").partition(b"\ndata: ")
    assert name == b"event: " + json.loads(data)["type"].encode()
    check(_RESPONSES, data)


def check_error(body: Json) -> None:
    """The body of a refusal by OpenAI."""
    assert body.keys() == {"error"}
    check(_ERROR, json.dumps(body["error"]).encode())


def check_messages_error(body: Json) -> None:
    """The body of a refusal by Anthropic."""
    check(_MESSAGES_ERROR, json.dumps(body).encode())


def check_ollama(piece: bytes) -> None:
    """A line of Ollama's stream."""
    assert piece.count(b"\n") == 1
    body = json.loads(piece)
    if "error" in body:
        check_ollama_error(body)
        return
    reply = ollama.ChatResponse.model_validate_json(piece, strict=True)
    unknown = {*dropped(body, reply)} - OF_NEWER_OLLAMA
    assert not unknown, f"{unknown} in {piece!r}"


def dropped(body: object, found: object, place: str = "") -> Iterator[str]:
    """Fields that are not in what the client has made of the body: its classes ignore what they do not know."""
    if isinstance(found, BaseModel) and isinstance(body, dict):
        yield from (f"{place}.{name}" for name in body if name not in type(found).model_fields)
        for name, value in found:
            yield from dropped(body.get(name), value, name)
    elif isinstance(found, list | tuple) and isinstance(body, list):
        for one, inner in zip(body, found, strict=True):
            yield from dropped(one, inner, place)


def check_ollama_error(body: Json) -> None:
    """The body of a refusal by Ollama."""
    assert body.keys() == {"error"}
    assert isinstance(body["error"], str)


CHECKS: Mapping[str, tuple[Callable[[bytes], None], Callable[[Json], None]]] = {
    "Anthropic": (check_messages, check_messages_error),
    "Ollama": (check_ollama, check_ollama_error),
    "OpenAI": (check_chat, check_error),
    "Responses": (check_responses, check_error),
}
"""By the class of the dialect: what checks its events, and what checks its refusals."""


class CheckedDialect:
    """A dialect whose every answer is checked as it is sent; `wrong` gets what is not as the SDK wants it."""

    def __init__(self, inner: Dialect, wrong: list[str]) -> None:
        self._inner = inner
        self._wrong = wrong
        self._event, self._error = CHECKS[type(inner).__name__]
        self.content_type = inner.content_type

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """As `Dialect.pieces`."""
        for piece in self._inner.pieces(reply, model):
            if isinstance(piece, bytes):
                self._note(partial(self._event, piece))
            yield piece

    def refusal(self, refusal: Refusal) -> Json:
        """As `Dialect.refusal`."""
        body = self._inner.refusal(refusal)
        self._note(partial(self._error, body))
        return body

    def problem(self, body: Json) -> str | None:
        """As `Dialect.problem`."""
        return self._inner.problem(body)

    def _note(self, judge: Callable[[], None]) -> None:
        try:
            judge()
        except (AssertionError, ValueError) as error:
            self._wrong.append(str(error))


def checked_dialects(wrong: list[str]) -> Mapping[str, Dialect]:
    """The dialects of `ModelServer`, with their answers checked."""
    return {end: CheckedDialect(dialect, wrong) for end, dialect in DIALECTS.items()}
