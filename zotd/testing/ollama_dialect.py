"""Scripted replies in the words of Ollama's `/api/chat`, and what its other pages say of the models that it has.

Written after Ollama's sources (version 0.33): a stream of JSON lines, calls that come whole, errors with a message and no
type, and a model that is loaded anew when a request asks for another context window.
"""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from zotd.testing.dialects import Json, Piece, json_bytes
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

CREATED = "2026-11-25T10:00:00.123456789Z"
DIGEST = "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41"
SIZE = 5_200_000_000

DEFAULT_NUM_CTX = 4096
"""What Ollama loads a model with on a small machine if no request and no Modelfile says otherwise."""

_DETAILS: Json = {
    "parent_model": "",
    "format": "gguf",
    "family": "qwen3",
    "families": ["qwen3"],
    "parameter_size": "8.2B",
    "quantization_level": "Q4_K_M",
}

_LEVEL = re.compile(r"high|medium|low")


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """An installed model."""

    context_length: int = 131_072
    """What it was made for."""
    num_ctx: int | None = None
    """Of its Modelfile."""
    capabilities: Sequence[str] = ("completion", "vision", "tools", "thinking")


@dataclass(slots=True)
class OllamaModels:
    """The installed models, and which are loaded; any name that is not listed is a model with the defaults."""

    installed: Mapping[str, OllamaModel] = field(default_factory=dict)
    loads: list[tuple[str, int]] = field(default_factory=list)
    """Each load of a model into memory, with the size of its context window."""

    def model(self, name: str) -> OllamaModel:
        """Return the model of that name."""
        return self.installed.get(name.removesuffix(":latest"), OllamaModel())

    def problem(self, body: Json) -> str | None:
        """Return why Ollama would refuse this request because of its model; else load the model."""
        name = str(body.get("model"))
        model = self.model(name)
        if body.get("tools") and "tools" not in model.capabilities:
            return f"registry.ollama.ai/library/{_full(name)} does not support tools"
        if body.get("think") and "thinking" not in model.capabilities:
            return f'"{name}" does not support thinking'
        options = cast("Json", body.get("options") or {})
        asked = cast("int", options.get("num_ctx") or model.num_ctx or DEFAULT_NUM_CTX)
        load = (_full(name), min(asked, model.context_length))
        if load not in self._loaded().items():
            self.loads.append(load)
        return None

    def show(self, name: str) -> Json:
        """`POST /api/show`."""
        model = self.model(name)
        given = "" if model.num_ctx is None else f"num_ctx                        {model.num_ctx}\n"
        return {
            "modelfile": f"FROM {name}\n",
            "parameters": f'{given}stop                           "<|im_end|>"',
            "template": "{{ .Prompt }}",
            "details": _DETAILS,
            "model_info": {
                "general.architecture": "qwen3",
                "general.parameter_count": 8_190_735_360,
                "qwen3.context_length": model.context_length,
                "qwen3.rope.scaling.original_context_length": 4096,
            },
            "capabilities": list(model.capabilities),
            "modified_at": CREATED,
        }

    def tags(self) -> Json:
        """`GET /api/tags`."""
        return {"models": [{**_listed(_full(name)), "modified_at": CREATED} for name in self.installed]}

    def ps(self) -> Json:
        """`GET /api/ps`."""
        more: Json = {"expires_at": CREATED, "size_vram": SIZE}
        return {"models": [{**_listed(one), **more, "context_length": size} for one, size in self._loaded().items()]}

    def _loaded(self) -> dict[str, int]:
        return dict(self.loads)


class Ollama:
    """`POST /api/chat`."""

    content_type = "application/x-ndjson"

    def pieces(self, reply: ScriptedReply, model: str) -> Iterator[Piece]:
        """As `Dialect.pieces`."""
        calls = 0
        for index, step in enumerate(reply.steps):
            match step:
                case Hang() | Cut() | Gate():
                    yield step
                    if not isinstance(step, Gate):
                        return
                case StreamError(text):
                    yield json_bytes({"error": text}) + b"\n"
                    return
                case ThinkingPart(deltas):
                    yield from (_line(model, content="", thinking=delta) for delta in deltas)
                case TextPart(deltas) | DeclinedPart(deltas):
                    yield from (_line(model, content=delta) for delta in deltas)
                case CallPart() if reply.ends(index):
                    yield _call(model, step, calls)
                    calls += 1
                case CallPart():
                    pass  # what there is of it is held back
        yield _end(model, reply)

    def refusal(self, refusal: Refusal) -> Json:
        """As `Dialect.refusal`."""
        return {"error": refusal.message}

    def problem(self, body: Json) -> str | None:
        """As `Dialect.problem`."""
        think = body.get("think")
        if isinstance(think, str) and not _LEVEL.fullmatch(think):
            return f'invalid think value: "{think}" (must be "high", "medium", "low", true, or false)'
        messages = cast("Sequence[Json]", body.get("messages") or ())
        return next((found for message in messages if (found := _problem_of(message))), None)


def _problem_of(message: Json) -> str | None:
    for call in cast("Sequence[Mapping[str, Json]]", message.get("tool_calls") or ()):
        if not isinstance(call["function"].get("arguments"), dict):
            kind = "api.ToolCallFunctionArguments"
            return f"json: cannot unmarshal string into Go struct field .messages.tool_calls.function.arguments of type {kind}"
    for image in cast("Sequence[str]", message.get("images") or ()):
        try:
            b64decode(image, validate=True)
        except Base64Error:
            return "illegal base64 data at input byte 0"
    return None


def _full(name: str) -> str:
    return name if ":" in name else f"{name}:latest"


def _listed(name: str) -> Json:
    return {"name": name, "model": name, "size": SIZE, "digest": DIGEST, "details": _DETAILS}


def _line(model: str, *, done: Json | None = None, **message: object) -> bytes:
    body: Json = {
        "model": model,
        "created_at": CREATED,
        "message": {"role": "assistant", **message},
        "done": done is not None,
    }
    return json_bytes(body | (done or {})) + b"\n"


def _call(model: str, call: CallPart, number: int) -> bytes:
    if call.raw:
        return _line(model, content=call.raw)  # no JSON, so Ollama takes it for text
    function: Json = {"index": number, "name": call.name, "arguments": dict(call.args)}
    return _line(model, content="", tool_calls=[{"id": f"call_{number:08}", "function": function}])


def _end(model: str, reply: ScriptedReply) -> bytes:
    usage = reply.usage
    done: Json = {
        "done_reason": "length" if reply.stop_reason == "length" else "stop",
        "total_duration": 174_560_334,
        "load_duration": 101_397_084,
        "prompt_eval_count": usage.input + usage.cache_read,
        "prompt_eval_cached_count": usage.cache_read,
        "prompt_eval_duration": 13_074_791,
        "eval_count": usage.output,
        "eval_duration": 52_479_709,
    }
    return _line(model, done=done, content="")
