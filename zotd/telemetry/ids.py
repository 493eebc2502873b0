"""Ids of traces and spans, computed from the ids of runs and calls, and the header `traceparent` that carries them.

Because they are computed, a tool's program can be told the id of its span before there is a span, and a run that goes on
after a restart can name the trace of the run that was cut without anything being stored.
"""

import re
from hashlib import blake2b

from msgspec import Struct

VARIABLE = "TRACEPARENT"
"""Name of the environment variable: https://opentelemetry.io/docs/specs/otel/context/env-carriers/."""

_HEADER = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.ASCII)

_SAMPLED = 1


class TraceParent(Struct, frozen=True):
    """A span, as its children in this or another process know it."""

    trace_id: int
    span_id: int
    is_sampled: bool

    @classmethod
    def parse(cls, text: str) -> "TraceParent | None":
        """Return what a `traceparent` says; None if it is not valid (https://www.w3.org/TR/trace-context/)."""
        found = _HEADER.fullmatch(text.strip())
        if found is None:
            return None
        trace_id, span_id, flags = (int(part, 16) for part in found.groups())
        return cls(trace_id, span_id, bool(flags & _SAMPLED)) if trace_id and span_id else None

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{_SAMPLED * self.is_sampled:02x}"

    def child(self, *names: str) -> "TraceParent":
        """Return the span of this trace that these names stand for; the same for the same names."""
        return TraceParent(self.trace_id, _number(8, *names), self.is_sampled)


def trace_id_of(run: str) -> int:
    """Return the id of the trace of a run that begins one."""
    return _number(16, "trace", run)


def root_span_id(run: str) -> int:
    """Return the id of a run's own span."""
    return _number(8, "run", run)


def _number(size: int, *names: str) -> int:
    return (
        int.from_bytes(blake2b("\0".join(names).encode(), digest_size=size).digest(), "big") or 1
    )  # 0 is not a valid id
