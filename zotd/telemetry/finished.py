"""A span that is over, and the attributes that the semantic conventions for generative AI define for it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from zotd.telemetry.ids import TraceParent
from zotd.wire.content import Tokens

AGENT = "zot"
"""`gen_ai.agent.name`."""

PROVIDERS: Mapping[str, str] = {
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""`gen_ai.provider.name` of vendors that the conventions call by another name."""

FINISH_REASONS: Mapping[str, str] = {"end_turn": "stop", "tool_use": "tool_call", "refusal": "content_filter"}
"""`gen_ai.response.finish_reasons` for `Reply.stop`, where they differ."""

Value = str | int | float | bool | tuple[str, ...]


class SpanEvent(NamedTuple):
    """Something that happened during a span."""

    name: str
    at_ns: int
    attributes: Mapping[str, Value]


class FinishedSpan(Struct, frozen=True):
    """A span that is over."""

    name: str
    own: TraceParent
    parent: TraceParent | None
    start_ns: int
    """In nanoseconds since the epoch, as `end_ns`."""
    end_ns: int
    attributes: Mapping[str, Value]
    is_client: bool = False
    """It is a request to another system."""
    events: Sequence[SpanEvent] = ()
    link: TraceParent | None = None
    """The run that this one continues."""
    is_child: bool = True
    """Its parent is a span of this process; else one of the program that the client belongs to."""

    @property
    def has_failed(self) -> bool:
        """Whether what it stands for failed."""
        return "error.type" in self.attributes


def model(provider: str, model: str) -> dict[str, Value]:
    """Return the attributes of a model; none for a run of which nothing is known."""
    if not provider:
        return {}
    return {"gen_ai.provider.name": PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def usage(tokens: Tokens, reasoning: int = 0) -> dict[str, Value]:
    """Return the attributes of what a request, or a run, has used; `reasoning` is a part of the output."""
    return {
        "gen_ai.usage.input_tokens": tokens.input + tokens.cache_read + tokens.cache_write,
        "gen_ai.usage.output_tokens": tokens.output,
        "gen_ai.usage.cache_read.input_tokens": tokens.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": tokens.cache_write,
        **({"gen_ai.usage.reasoning.output_tokens": reasoning} if reasoning else {}),
        "zot.usage.cost_usd": tokens.cost_usd,
    }


def tool(session: str, name: str, call: str) -> dict[str, Value]:
    """Return the attributes of a tool call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": session,
    }
