"""Scripted replies in the words of Anthropic Messages and OpenAI Chat Completions, as server-sent events.

A dialect turns a `script.ScriptedReply` into pieces: bytes to send, and waits. It also judges a request's history the way
the vendor does, so that a transcript which the real API would refuse is refused here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast

from zotd.testing.script import (
    CallPart,
    Cut,
    DeclinedPart,
    Gate,
    Hang,
    Refusal,
    ScriptedReply,
    StreamError,
    TextPart,
    ThinkingPart,
)

EVENT_STREAM = "text/event-stream"

Json = dict[str, object]
Piece = bytes | Gate | Hang | Cut


class Dialect(Protocol):
    """One vendor's API."""

    content_type: str
    """Of its streams."""

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """The stream of a reply; ends early after Hang or Cut."""
        ...

    def refusal(self, refusal: Refusal) -> Json:
        """The body of an error."""
        ...

    def problem(self, body: Json) -> str | None:
        """Why the vendor would refuse this request with 400; None when it would not."""
        ...


def until_cut(reply: ScriptedReply, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield the pieces up to where `ScriptedReply.cut_after` breaks the connection."""
    sent = 0
    for piece in pieces:
        if sent == reply.cut_after:
            yield Cut()
            return
        yield piece
        sent += isinstance(piece, bytes)
    if sent == reply.cut_after:
        yield Cut()


class Anthropic:
    """`POST /v1/messages`."""

    content_type = EVENT_STREAM

    _STOPS: Mapping[str, str] = {"length": "max_tokens"}
    _KINDS: Mapping[int, str] = {
        400: "invalid_request_error",
        401: "authentication_error",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    }

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """As `Dialect.pieces`."""
        usage = reply.usage
        counts: Json = {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write - usage.cache_write_hour,
                "ephemeral_1h_input_tokens": usage.cache_write_hour,
            },
            "output_tokens": 1,
        }
        message: Json = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": counts,
        }
        if not isinstance(reply.steps[0] if reply.steps else None, Hang):
            yield event({"type": "message_start", "message": message})
        for index, step in enumerate(reply.steps):
            match step:
                case Hang() | Cut() | Gate():
                    yield step
                    if not isinstance(step, Gate):
                        return
                case StreamError(text, kind):
                    yield event({"type": "error", "error": {"type": kind, "message": text}})
                    return
                case DeclinedPart(deltas):
                    yield from self._block(TextPart(deltas), index, ends=reply.ends(index))
                case TextPart() | ThinkingPart() | CallPart():
                    yield from self._block(step, index, ends=reply.ends(index))
        delta = {"stop_reason": self._STOPS.get(reply.stop_reason, reply.stop_reason), "stop_sequence": None}
        yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output}})
        yield event({"type": "message_stop"})

    def refusal(self, refusal: Refusal) -> Json:
        """As `Dialect.refusal`."""
        kind = refusal.kind or self._KINDS.get(refusal.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": refusal.message}}

    def problem(self, body: Json) -> str | None:
        """As `Dialect.problem`."""
        messages = _messages(body)
        if not messages or messages[0]["role"] != "user":
            return "messages: first message must use the user role"
        waiting: set[str] = set()
        for number, message in enumerate(messages):
            blocks = _blocks(message)
            if not blocks:
                return f"messages.{number}: all messages must have non-empty content"
            if any(block.get("type") == "text" and not block.get("text") for block in blocks):
                return f"messages.{number}: text content blocks must be non-empty"
            results = [str(block["tool_use_id"]) for block in blocks if block.get("type") == "tool_result"]
            if waiting != set(results) or len(results) != len(waiting):
                return f"messages.{number}: tool_use ids without tool_result blocks immediately after, or the reverse"
            waiting = {str(block["id"]) for block in blocks if block.get("type") == "tool_use"}
        return f"tool_use ids were found without tool_result blocks: {sorted(waiting)}" if waiting else None

    def _block(self, step: TextPart | ThinkingPart | CallPart, index: int, *, ends: bool) -> Iterator[bytes]:
        start, pieces = self._block_parts(step, index)
        if not ends:
            pieces = pieces[:-1] or pieces
        yield event({"type": "content_block_start", "index": index, "content_block": start})
        for piece in pieces:
            yield event({"type": "content_block_delta", "index": index, "delta": piece})
        if ends:
            yield event({"type": "content_block_stop", "index": index})

    def _block_parts(self, step: TextPart | ThinkingPart | CallPart, index: int) -> tuple[Json, list[Json]]:
        """How a block starts, and its deltas."""
        match step:
            case TextPart(deltas):
                return {"type": "text", "text": ""}, [{"type": "text_delta", "text": delta} for delta in deltas]
            case ThinkingPart(deltas, signature):
                pieces: list[Json] = [{"type": "thinking_delta", "thinking": delta} for delta in deltas]
                pieces.append({"type": "signature_delta", "signature": signature})
                return {"type": "thinking", "thinking": "", "signature": ""}, pieces
            case CallPart(name):
                start: Json = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
                return start, [{"type": "input_json_delta", "partial_json": part} for part in step.argument_pieces]


class OpenAI:
    """`POST /v1/chat/completions`."""

    content_type = EVENT_STREAM

    _STOPS: Mapping[str, str] = {
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "length": "length",
        "refusal": "content_filter",
    }

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """As `Dialect.pieces`."""
        if not isinstance(reply.steps[0] if reply.steps else None, Hang):
            yield _chunk(model, {"role": "assistant", "content": ""})
        number = 0
        for index, step in enumerate(reply.steps):
            match step:
                case Hang() | Cut() | Gate():
                    yield step
                    if not isinstance(step, Gate):
                        return
                case StreamError(text, kind):
                    yield (
                        b"data: "
                        + json_bytes({"error": {"message": text, "type": kind, "param": None, "code": None}})
                        + b"\n\n"
                    )
                    return
                case TextPart(deltas):
                    yield from (_chunk(model, {"content": delta}) for delta in deltas)
                case ThinkingPart(deltas):
                    yield from (_chunk(model, {"reasoning_content": delta}) for delta in deltas)
                case DeclinedPart(deltas):
                    yield from (_chunk(model, {"refusal": delta}) for delta in deltas)
                case CallPart():
                    yield from self._call(step, number, model, ends=reply.ends(index))
                    number += 1
        declined = any(isinstance(step, DeclinedPart) for step in reply.steps)  # in words: the reply itself is whole
        yield _chunk(model, {}, finish="stop" if declined else self._STOPS.get(reply.stop_reason, reply.stop_reason))
        usage = reply.usage
        read = usage.input + usage.cache_read
        counts = {
            "prompt_tokens": read,
            "completion_tokens": usage.output,
            "total_tokens": read + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        }
        yield _chunk(model, None, usage=counts)
        yield b"data: [DONE]\n\n"

    def refusal(self, refusal: Refusal) -> Json:
        """As `Dialect.refusal`."""
        error = {"message": refusal.message, "type": "error", "param": None, "code": refusal.kind or None}
        return {"error": error}

    def problem(self, body: Json) -> str | None:
        """As `Dialect.problem`."""
        waiting: set[str] = set()
        for number, message in enumerate(_messages(body)):
            if message["role"] == "tool":
                call_id = str(message.get("tool_call_id"))
                if call_id not in waiting:
                    return f"messages.[{number}]: role 'tool' must be a response to a preceding 'tool_calls'"
                waiting.remove(call_id)
            elif waiting:
                return f"messages.[{number}]: an assistant message with 'tool_calls' must be followed by tool messages"
            for call in cast("Sequence[Json]", message.get("tool_calls") or ()):
                waiting.add(str(call["id"]))
        return f"tool_call_ids did not have response messages: {sorted(waiting)}" if waiting else None

    def _call(self, call: CallPart, number: int, model: str, *, ends: bool) -> Iterator[bytes]:
        head: Json = {"index": number, "id": f"call_{number}", "type": "function"}
        if call.signature:
            head["extra_content"] = {"google": {"thought_signature": call.signature}}
        yield _chunk(model, {"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        pieces = call.argument_pieces
        for piece in pieces if ends else pieces[:-1] or pieces:
            yield _chunk(model, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})


def _messages(body: Json) -> Sequence[Json]:
    # Requests come from SDKs: of the vendor's form, and judged only for the order of calls and results.
    return cast("Sequence[Json]", body.get("messages") or ())


def _blocks(message: Json) -> Sequence[Json]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("Sequence[Json]", content)


def _chunk(model: str, delta: Json | None, *, finish: str | None = None, usage: Json | None = None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": choices,
        "usage": usage,
    }
    return b"data: " + json_bytes(body) + b"\n\n"


def event(body: Json) -> bytes:
    """A server-sent event that is named after its type."""
    return b"event: " + str(body["type"]).encode() + b"\ndata: " + json_bytes(body) + b"\n\n"


def json_bytes(body: Json) -> bytes:
    """The body as the vendors write it."""
    return json.dumps(body, separators=(",", ":")).encode()
