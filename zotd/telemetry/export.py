"""Sends finished spans to an OpenTelemetry collector, in a thread of its own.

    SessionSpans ──put──> bounded queue ──every few seconds──> thread: SDK spans ──> OTLP exporter ──> collector

The event loop only appends to the queue. A collector that is slow, refuses or is gone costs spans, which are counted, and
never delays a run. This is the only module that imports `opentelemetry`; import it only when traces are wanted.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import (
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
    OTEL_BSP_MAX_QUEUE_SIZE,
    OTEL_BSP_SCHEDULE_DELAY,
    OTEL_SERVICE_NAME,
)
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from zotd.config import TelemetrySection
from zotd.telemetry.finished import AGENT, FinishedSpan
from zotd.telemetry.ids import TraceParent
from zotd.wire.reports import MetricFamily, MetricSample
from zotd.wire.version import VERSION

log = logging.getLogger(__name__)

CLOSE_S = 3.0
"""Longest wait at the end for spans that are not delivered yet; then they are given up."""

QUEUE_SPANS = 2048
"""Most spans that wait, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise; a span takes about 2 KB without content."""

BATCH_SPANS = 512
"""Most spans of a request, unless OTEL_BSP_MAX_EXPORT_BATCH_SIZE says otherwise."""

DELAY_MS = 5000
"""Pause between two requests, unless OTEL_BSP_SCHEDULE_DELAY says otherwise."""

WAITING_CHARS = 16 * 1024 * 1024
"""Most characters of attributes that wait; only content is ever so much."""

BATCH_CHARS = 2 * 1024 * 1024
"""Characters after which a request is full: collectors refuse requests of some megabytes."""

PATH = "/v1/traces"

SCOPE = "zot"


class SpanExport:
    """Takes finished spans, and sends them. Close it, or what waits is lost."""

    def __init__(self, exporter: SpanExporter, provider: TracerProvider, *, ids: "GivenIds", endpoint: str) -> None:
        """Start to export; `opened` makes the exporter and the provider from the configuration.

        Args:
            exporter: takes the spans, and is shut down by `close`.
            provider: makes the spans; has no processor.
            ids: what `provider` takes the ids of spans from.
            endpoint: what messages call the collector.
        """
        self._exporter, self._provider, self._ids, self._endpoint = exporter, provider, ids, endpoint
        self._sampler: Sampler = provider.sampler
        self._ended = _EndedSpans()
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer(SCOPE, VERSION)
        self._most = _number(OTEL_BSP_MAX_QUEUE_SIZE, QUEUE_SPANS)
        self._batch = min(self._most, _number(OTEL_BSP_MAX_EXPORT_BATCH_SIZE, BATCH_SPANS))
        self._delay_s = _number(OTEL_BSP_SCHEDULE_DELAY, DELAY_MS) / 1000
        self._waiting: deque[FinishedSpan] = deque()
        self._wake = threading.Event()
        self._is_closing = False
        # Each of these is changed by one thread only: the event loop, or the exporting thread.
        self._put_chars = self._overflowed = 0
        self._taken_chars = self._exported = self._lost = 0
        self._is_refused = False
        """The last request has failed."""
        # A daemon thread: one that hangs in a request must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
        self._thread.start()

    @classmethod
    def opened(cls, settings: TelemetrySection) -> Self:
        """Start to export as configured; makes no request yet.

        Raises:
            ValueError, OSError: a variable of OpenTelemetry or a file that it names is not usable.
        """
        ids = GivenIds()
        named = {} if os.environ.get(OTEL_SERVICE_NAME) else {SERVICE_NAME: AGENT}
        resource = Resource.create({**named, SERVICE_VERSION: VERSION})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=ids)
        endpoint = None if settings.endpoint is None else settings.endpoint.rstrip("/") + PATH
        return cls(OTLPSpanExporter(endpoint), provider, ids=ids, endpoint=endpoint or "its collector")

    # --- on the event loop --------------------------------------------------------------------------------------------

    def put(self, span: FinishedSpan) -> None:
        """Send the span later; without effect if too many wait."""
        if len(self._waiting) >= self._most or self._put_chars - self._taken_chars > WAITING_CHARS:
            self._overflowed += 1
            return
        self._put_chars += _chars(span)
        self._waiting.append(span)
        if len(self._waiting) == self._batch:
            self._wake.set()

    def is_sampled(self, trace_id: int, parent: TraceParent | None) -> bool:
        """Return what the configured sampler says about a trace (OTEL_TRACES_SAMPLER; default: all of them)."""
        context = None if parent is None else _context(parent, is_remote=True)
        return self._sampler.should_sample(context, trace_id, "run").decision is Decision.RECORD_AND_SAMPLE

    def problem(self) -> str | None:
        """Return a sentence if spans are lost at the moment."""
        if not self._is_refused:
            return None
        return f"telemetry: {self._endpoint} does not take traces ({self._dropped} spans lost); see the daemon's log"

    def families(self) -> list[MetricFamily]:
        """Return how many spans were delivered and lost."""
        text = "Spans of traces, by what became of them."
        counts = {"exported": self._exported, "dropped": self._dropped}
        samples = [MetricSample({"outcome": outcome}, count) for outcome, count in counts.items()]
        return [MetricFamily("zotd_telemetry_spans", "counter", text, samples)]

    @property
    def _dropped(self) -> int:
        return self._overflowed + self._lost

    async def close(self) -> None:
        """Send what waits, for `CLOSE_S` at most."""
        self._is_closing = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join, CLOSE_S)
        self._exporter.shutdown()  # ends the pause before a repeated request, and with it the thread
        if self._waiting or self._thread.is_alive():
            log.warning("telemetry: %s did not take the last spans within %g s", self._endpoint, CLOSE_S)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._is_closing or self._waiting:
            if not self._is_closing:
                self._wake.wait(self._delay_s)
                self._wake.clear()
            while self._waiting:
                batch = self._take()
                try:
                    self._send(batch)
                except Exception:  # a fault of ours or of a library must not end the thread
                    log.exception("spans could not be exported")
                    self._lost += len(batch)

    def _take(self) -> list[FinishedSpan]:
        """Return the spans of the next request."""
        batch: list[FinishedSpan] = []
        chars = 0
        while self._waiting and len(batch) < self._batch and chars < BATCH_CHARS:
            batch.append(self._waiting.popleft())
            chars += _chars(batch[-1])
        self._taken_chars += chars
        return batch

    def _send(self, batch: Sequence[FinishedSpan]) -> None:
        for span in batch:
            self._begin_and_end(span)
        ready = self._ended.take()
        is_refused = bool(ready) and self._exporter.export(ready) is not SpanExportResult.SUCCESS
        if is_refused:
            self._lost += len(ready)
        else:
            self._exported += len(ready)
        self._is_refused = is_refused

    def _begin_and_end(self, finished: FinishedSpan) -> None:
        self._ids.give(finished.own)
        parent = finished.parent
        # A parent in another process is one that this process has made no span of.
        context = Context() if parent is None else _context(parent, is_remote=not finished.is_child)
        link = finished.link
        span = self._tracer.start_span(
            finished.name,
            context=context,
            kind=SpanKind.CLIENT if finished.is_client else SpanKind.INTERNAL,
            attributes=finished.attributes,
            links=() if link is None else (Link(_span_context(link, is_remote=False)),),
            start_time=finished.start_ns,
            record_exception=False,
        )
        for event in finished.events:
            span.add_event(event.name, event.attributes, timestamp=event.at_ns)
        if finished.has_failed:
            # Without a description: sentences of vendors and guards may quote what was said.
            span.set_status(Status(StatusCode.ERROR))
        # A clock that was set back meanwhile must not make a span of negative length.
        span.end(max(finished.start_ns, finished.end_ns))


class GivenIds(IdGenerator):
    """Hands out the ids of the span that is about to be made."""

    def __init__(self) -> None:
        self._next = TraceParent(1, 1, is_sampled=True)

    def give(self, own: TraceParent) -> None:
        """The next span is this one."""
        self._next = own

    def generate_span_id(self) -> int:
        """Return the id of the span."""
        return self._next.span_id

    def generate_trace_id(self) -> int:
        """Return the id of its trace."""
        return self._next.trace_id


class _EndedSpans(SpanProcessor):
    """Collects the spans of one batch."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Add a span."""
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """Return the spans since the last call."""
        taken, self._spans = self._spans, []
        return taken


def _span_context(span: TraceParent, *, is_remote: bool) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if span.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(span.trace_id, span.span_id, is_remote, flags)


def _context(span: TraceParent, *, is_remote: bool) -> Context:
    return trace.set_span_in_context(NonRecordingSpan(_span_context(span, is_remote=is_remote)), Context())


def _chars(span: FinishedSpan) -> int:
    """Return how many characters the attributes of a span have."""
    return sum(len(value) for value in span.attributes.values() if isinstance(value, str))


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() and int(text) else default
