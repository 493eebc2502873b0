"""Scripted replies in the words of OpenAI's Responses API; see `zotd.testing.dialects`.

A request is judged as the vendor does with `store: false`: calls and results belong together, reasoning comes back
encrypted and with the item behind it, and an item that was written after reasoning comes with that reasoning.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from itertools import count, islice, zip_longest
from typing import cast

from zotd.testing.dialects import EVENT_STREAM, Json, Piece, event
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

Written = TextPart | ThinkingPart | DeclinedPart | CallPart

LEAST_OUTPUT = 16
"""Least `max_output_tokens` that the vendor takes."""

_AFTER_REASONING = re.compile(r"(?:msg|fc)_(\w+)_\d+_after_(\d+)")
"""Id of an item that was written after the reasoning with that number."""


class Responses:
    """`POST /v1/responses`."""

    content_type = EVENT_STREAM

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """As `Dialect.pieces`."""
        return _Stream(reply, model).pieces()

    def refusal(self, refusal: Refusal) -> Json:
        """As `Dialect.refusal`."""
        error = {"message": refusal.message, "type": "error", "param": None, "code": refusal.kind or None}
        return {"error": error}

    def problem(self, body: Json) -> str | None:
        """As `Dialect.problem`."""
        given = body.get("input")
        items: Sequence[Json] = [] if isinstance(given, str) else cast("Sequence[Json]", given or ())
        if not given:
            return "One of 'input' or 'previous_response_id' must be provided."
        if cast("int", body.get("max_output_tokens", LEAST_OUTPUT)) < LEAST_OUTPUT:
            return f"Invalid 'max_output_tokens': integer below minimum value, {LEAST_OUTPUT}"
        return _unpaired(items) or _without_neighbour(items)


def _unpaired(items: Sequence[Json]) -> str | None:
    """Calls without a result, or the reverse."""
    waiting: set[str] = set()
    for item in items:
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call":
            waiting.add(call_id)
        elif item.get("type") == "function_call_output":
            if call_id not in waiting:
                return f"No tool call found for function call output with call_id {call_id}."
            waiting.remove(call_id)
    return f"No tool output found for function call {min(waiting)}." if waiting else None


def _without_neighbour(items: Sequence[Json]) -> str | None:
    """Reasoning without what follows it, or an item without its reasoning."""
    known = {str(item.get("id")) for item in items if item.get("type") == "reasoning"}
    end: Json = {}
    for item, after in zip_longest(items, items[1:], fillvalue=end):
        name = str(item.get("id", ""))
        if item.get("type") == "reasoning":
            if not item.get("encrypted_content"):
                return f"Item with id '{name}' not found. Items are not persisted when `store` is set to false."
            if after.get("type") not in {"reasoning", "function_call"} and after.get("role") != "assistant":
                return f"Item '{name}' of type 'reasoning' was provided without its required following item."
        elif (found := _AFTER_REASONING.fullmatch(name)) and f"rs_{found[1]}_{found[2]}" not in known:
            return f"Item '{name}' was provided without its required 'reasoning' item: 'rs_{found[1]}_{found[2]}'."
    return None


class _Stream:
    """The events of one reply."""

    def __init__(self, reply: ScriptedReply, model: str) -> None:
        self._reply = reply
        self._model = model
        self._token = secrets.token_hex(8)
        self._numbers = count()
        self._output: list[Json] = []
        self._has_reasoned = any(isinstance(step, ThinkingPart) for step in reply.steps)
        """Then half of its tokens were for that."""
        self._reasoned: int | None = None
        """Index of the reasoning that the next item is written after."""

    def pieces(self) -> Iterator[Piece]:
        steps = self._reply.steps
        if not isinstance(steps[0] if steps else None, Hang):
            yield self._event("response.created", response=self._response("in_progress"))
            yield self._event("response.in_progress", response=self._response("in_progress"))
        for index, step in enumerate(steps):
            match step:
                case Hang() | Cut() | Gate():
                    yield step
                    if not isinstance(step, Gate):
                        return
                case StreamError():
                    yield self._error(step)
                    return
                case TextPart() | ThinkingPart() | DeclinedPart() | CallPart():
                    yield from self._item(step, ends=self._reply.ends(index))
        yield self._last()

    def _last(self) -> bytes:
        reason = {"length": "max_output_tokens", "refusal": "content_filter"}.get(self._reply.stop_reason)
        if any(isinstance(step, DeclinedPart) for step in self._reply.steps):
            reason = None  # the model has said so itself: the reply is whole
        status = "incomplete" if reason else "completed"
        return self._event(f"response.{status}", response=self._response(status, reason=reason))

    def _error(self, step: StreamError) -> bytes:
        if step.fails:
            return self._event("response.failed", response=self._response("failed", error=step))
        return self._event("error", code=step.kind, message=step.message, param=None)

    def _item(self, step: Written, *, ends: bool) -> Iterator[bytes]:
        place: Json = {"output_index": len(self._output)}
        begun, whole = self._forms(step)
        yield self._event("response.output_item.added", **place, item=begun)
        # Of an item that is cut come all deltas but its last, of a text all.
        deltas = max(1, len(step.argument_pieces) - 1) if isinstance(step, CallPart) else 1 + len(step.deltas)
        yield from islice(self._inside(step, {**place, "item_id": begun["id"]}), None if ends else deltas)
        if ends:
            self._output.append(whole)
            yield self._event("response.output_item.done", **place, item=whole)

    def _forms(self, step: Written) -> tuple[Json, Json]:
        """The item as it begins, and as it ends."""
        index = len(self._output)
        if isinstance(step, ThinkingPart):
            self._reasoned = index
            item: Json = {"id": f"rs_{self._token}_{index}", "type": "reasoning", "summary": []}
            summary = [{"type": "summary_text", "text": "".join(step.deltas)}] if step.deltas else []
            return item, {**item, "summary": summary, "encrypted_content": step.signature}
        kind = "fc" if isinstance(step, CallPart) else "msg"
        name = f"{kind}_{self._token}_{index}" + ("" if self._reasoned is None else f"_after_{self._reasoned}")
        self._reasoned = None
        begun: Json = {"id": name, "status": "in_progress"}
        if isinstance(step, CallPart):
            begun |= {"type": "function_call", "call_id": f"call_{name}", "name": step.name, "arguments": ""}
            return begun, {**begun, "status": "completed", "arguments": "".join(step.argument_pieces)}
        begun |= {"type": "message", "role": "assistant", "content": []}
        return begun, {**begun, "status": "completed", "content": [_part(step, "".join(step.deltas))]}

    def _inside(self, step: Written, place: Json) -> Iterator[bytes]:
        """The events between the beginning of an item and its end."""
        if isinstance(step, CallPart):
            kind = "response.function_call_arguments"
            yield from (self._event(f"{kind}.delta", **place, delta=piece) for piece in step.argument_pieces)
            yield self._event(f"{kind}.done", **place, arguments="".join(step.argument_pieces))
            return
        whole = "".join(step.deltas)
        if isinstance(step, ThinkingPart):
            if not step.deltas:
                return
            kind, part, number = "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"
            form: Json = {"type": "summary_text"}
            before, after = {**form, "text": ""}, {**form, "text": whole}
        else:
            kind = "response.refusal" if isinstance(step, DeclinedPart) else "response.output_text"
            part, number = "response.content_part", "content_index"
            before, after = _part(step, ""), _part(step, whole)
        place = {**place, number: 0}
        more: Json = {"logprobs": []} if isinstance(step, TextPart) else {}
        yield self._event(f"{part}.added", **place, part=before)
        yield from (self._event(f"{kind}.delta", **place, delta=delta, **more) for delta in step.deltas)
        field = "refusal" if isinstance(step, DeclinedPart) else "text"
        yield self._event(f"{kind}.done", **place, **{field: whole}, **more)
        yield self._event(f"{part}.done", **place, part=after)

    def _event(self, kind: str, **fields: object) -> bytes:
        return event({"type": kind, "sequence_number": next(self._numbers), **fields})

    def _response(self, status: str, *, reason: str | None = None, error: StreamError | None = None) -> Json:
        usage = self._reply.usage
        read = usage.input + usage.cache_read + usage.cache_write
        counts = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.output // 2 if self._has_reasoned else 0},
            "total_tokens": read + usage.output,
        }
        return {
            "id": f"resp_{self._token}",
            "object": "response",
            "created_at": 1,
            "status": status,
            "error": None if error is None else {"code": error.kind, "message": error.message},
            "incomplete_details": None if reason is None else {"reason": reason},
            "instructions": None,
            "metadata": {},
            "model": self._model,
            "output": list(self._output),
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None if status == "in_progress" else counts,
        }


def _part(step: TextPart | DeclinedPart, text: str) -> Json:
    if isinstance(step, DeclinedPart):
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
