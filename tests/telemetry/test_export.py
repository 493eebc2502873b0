"""Spans as the SDK's own exporter in memory gets them: what the official classes make of a finished span."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from zotd.telemetry.export import GivenIds, SpanExport
from zotd.telemetry.finished import FinishedSpan, SpanEvent
from zotd.telemetry.ids import TraceParent

RUN = TraceParent(0xABC, 0x1, is_sampled=True)
CUT = TraceParent(0xDEF, 0x2, is_sampled=True)
REQUEST = TraceParent(0xABC, 0x3, is_sampled=True)


@pytest.fixture
def exported():
    """`await exported(span, ...)`: the spans that an exporter in memory has got when the export was closed."""

    async def exported(*finished):
        memory, ids = InMemorySpanExporter(), GivenIds()
        export = SpanExport(
            memory, TracerProvider(shutdown_on_exit=False, id_generator=ids), ids=ids, endpoint="memory"
        )
        for span in finished:
            export.put(span)
        await export.close()
        return memory.get_finished_spans()

    return exported


async def test_a_request_is_a_child_of_its_run_with_the_given_ids_times_and_attributes(exported):
    began = SpanEvent("first token", 1_500, {"n": 1})
    request, run = await exported(
        FinishedSpan(
            "chat m", REQUEST, RUN, 1_000, 2_000, {"gen_ai.request.model": "m"}, is_client=True, events=[began]
        ),
        FinishedSpan("invoke_agent zot", RUN, None, 500, 3_000, {}, link=CUT),
    )
    assert (request.context.trace_id, request.context.span_id) == (REQUEST.trace_id, REQUEST.span_id)
    assert (request.parent.span_id, request.parent.is_remote) == (RUN.span_id, False)
    assert (request.start_time, request.end_time, request.kind) == (1_000, 2_000, SpanKind.CLIENT)
    assert dict(request.attributes) == {"gen_ai.request.model": "m"}
    assert [(event.name, event.timestamp) for event in request.events] == [("first token", 1_500)]
    assert (run.parent, run.kind) == (None, SpanKind.INTERNAL)
    assert [(link.context.trace_id, link.context.span_id) for link in run.links] == [(CUT.trace_id, CUT.span_id)]


async def test_a_failed_span_has_the_status_and_no_sentence_of_the_vendor(exported):
    (span,) = await exported(FinishedSpan("chat m", REQUEST, RUN, 1, 2, {"error.type": "overloaded"}))
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


async def test_a_clock_that_was_set_back_makes_no_span_of_negative_length(exported):
    (span,) = await exported(FinishedSpan("chat m", REQUEST, RUN, 2_000, 1_000, {}))
    assert (span.start_time, span.end_time) == (2_000, 2_000)


async def test_a_parent_in_another_process_is_remote(exported):
    (span,) = await exported(FinishedSpan("invoke_agent zot", REQUEST, RUN, 1, 2, {}, is_child=False))
    assert span.parent.is_remote
