"""What a process has of telemetry: figures always, traces if they are wanted."""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Protocol

from zotd.config import TelemetrySection
from zotd.core.run_watch import GuardAnswer, NestedCall, RunWatch
from zotd.ledger.ledger import Ledger
from zotd.telemetry.figures import RunFigures
from zotd.telemetry.spans import SessionSpans, SpanSink
from zotd.wire.reports import MetricFamily

log = logging.getLogger(__name__)

EXTRA_MISSING = (
    "telemetry.traces is on, but OpenTelemetry is not installed, so no traces are made; run: pip install 'zotd[otel]'"
)


class Exporting(SpanSink, Protocol):
    """`zotd.telemetry.export.SpanExport`, which is imported only if traces are wanted."""

    def problem(self) -> str | None:
        """Return a sentence if spans are lost at the moment."""
        ...

    def families(self) -> list[MetricFamily]:
        """Return how many spans were delivered and lost."""
        ...

    async def close(self) -> None:
        """Send what waits, for a bounded time."""
        ...


class Telemetry:
    """Figures and traces of all sessions of this process."""

    def __init__(self, export: Exporting | None = None, *, has_content: bool = False, problem: str = "") -> None:
        """`export`: takes spans; None: no traces are made. `problem`: why there are none although they are wanted."""
        self.figures = RunFigures()
        self._export = export
        self._has_content = has_content
        self._problem = problem

    @classmethod
    def opened(cls, settings: TelemetrySection) -> "Telemetry":
        """Prepare what is configured. Never raises: `problems` says what is wrong."""
        if not settings.traces or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return cls()
        try:
            from zotd.telemetry.export import SpanExport  # noqa: PLC0415  (takes 0.1 s and 16 MB)

            return cls(SpanExport.opened(settings), has_content=settings.content)
        except ImportError:
            return cls(problem=EXTRA_MISSING)
        except (ValueError, OSError) as error:
            return cls(problem=f"no traces are made: {error}")

    @property
    def makes_traces(self) -> bool:
        """Whether traces are made."""
        return self._export is not None

    def watch(self, ledger: Ledger, environment: Callable[[], Mapping[str, str]]) -> RunWatch:
        """Follow a session from now on. `environment` returns that of its client."""
        ledger.watchers.append(self.figures.watch(ledger.row.cwd))
        if self._export is None:
            return SessionWatch(self.figures, None)
        spans = SessionSpans(
            ledger.row.id,
            ledger.row.cwd,
            self._export,
            environment=environment,
            transcript=lambda: ledger.transcript,
            has_content=self._has_content,
        )
        ledger.watchers.append(spans.committed)
        return SessionWatch(self.figures, spans)

    def families(self) -> list[MetricFamily]:
        """Return the figures of runs, and of traces if they are made."""
        return [*self.figures.families(), *(self._export.families() if self._export is not None else ())]

    def problems(self) -> list[str]:
        """Return why traces are not made or not delivered, for `daemon.status`."""
        lost = None if self._export is None else self._export.problem()
        return [sentence for sentence in (self._problem, lost) if sentence]

    async def close(self) -> None:
        """Send the spans that wait, for a bounded time."""
        if self._export is not None:
            await self._export.close()


class SessionWatch:
    """Follows one session; satisfies `core.run_watch.RunWatch`."""

    def __init__(self, figures: RunFigures, spans: SessionSpans | None) -> None:
        """`spans`: None if no traces are made."""
        self._figures, self._spans = figures, spans
        self.makes_traces = spans is not None

    def traceparent(self, key: str) -> str:
        """Return the `traceparent` for the call, or the question to a guard, with this id."""
        return "" if self._spans is None else self._spans.traceparent(key)

    def guarded(self, answer: GuardAnswer) -> None:
        """Count the answer, and make its span."""
        self._figures.guarded(answer.extension, answer.event, answer.took_s)
        if self._spans is not None:
            self._spans.guarded(answer)

    def nested(self, call: NestedCall) -> None:
        """Make the call's span."""
        if self._spans is not None:
            self._spans.nested(call)
