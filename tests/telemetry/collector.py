"""A collector that takes OTLP over HTTP, and decodes it with the official classes."""

import asyncio
from dataclasses import dataclass
from typing import Self

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from zotd.testing.http_site import listening

CLOSE_S = 0.5


@dataclass(frozen=True)
class ReceivedSpan:
    """A span, with its attributes as plain values."""

    raw: Span
    attributes: dict[str, object]

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def id(self) -> bytes:
        return self.raw.span_id

    @property
    def parent(self) -> bytes:
        return self.raw.parent_span_id

    @property
    def trace(self) -> bytes:
        return self.raw.trace_id

    @property
    def seconds(self) -> float:
        return (self.raw.end_time_unix_nano - self.raw.start_time_unix_nano) / 1e9

    @property
    def has_failed(self) -> bool:
        return self.raw.status.code == self.raw.status.STATUS_CODE_ERROR


class Collector:
    """Serves on loopback while it is entered."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.resources: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        """The requests, as they came."""
        self.status = 200
        """What is answered."""
        self.gate = asyncio.Event()
        """An answer waits for it."""
        self.gate.set()
        self.url = ""
        self._arrived = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self.url = await listening(self._runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def until(self, name: str, count: int = 1) -> list[ReceivedSpan]:
        """All spans, as soon as there are so many whose name begins so."""
        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: sum(one.name.startswith(name) for one in self.spans) >= count)
        return self.spans

    async def requests(self, count: int) -> None:
        """Wait until so many requests have come."""
        async with asyncio.timeout(30), self._arrived:
            await self._arrived.wait_for(lambda: len(self.bodies) >= count)

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.headers.append(dict(request.headers))
        self.bodies.append(body)
        if self.status == 200:
            self._decode(body)
        async with self._arrived:
            self._arrived.notify_all()
        await self.gate.wait()
        answer = ExportTraceServiceResponse().SerializeToString() if self.status == 200 else b""
        return web.Response(status=self.status, body=answer, content_type="application/x-protobuf")

    def _decode(self, body: bytes) -> None:
        for found in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append({one.key: plain(one.value) for one in found.resource.attributes})
            for scope in found.scope_spans:
                self.spans += [
                    ReceivedSpan(span, {one.key: plain(one.value) for one in span.attributes}) for span in scope.spans
                ]


def plain(value: AnyValue) -> object:
    """The value in Python."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
