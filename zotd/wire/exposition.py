"""The response to `daemon.metrics` in the text format of Prometheus. It names models, tools and working directories.

Import it only where the text is needed: prometheus-client takes 0.1 s and 6 MB.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from zotd.wire.reports import MetricFamily, Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGES = {
    "uptime_s": ("uptime_seconds", "Seconds since the daemon started."),
    "sessions": ("sessions", "Sessions in memory."),
    "running": ("sessions_running", "Sessions with a run in progress."),
    "clients": ("clients", "Open connections."),
    "tasks": ("tasks", "Tasks of the event loop."),
    "children": ("children", "Running child processes."),
    "descriptors": ("descriptors", "Open files, sockets and pipes."),
    "rss_bytes": ("resident_memory_bytes", "Resident memory."),
}
"""Gauges: field of `Metrics` -> name after `zotd_`, and help text."""

COUNTERS = {
    "connections": ("connections", "Accepted connections."),
    "evictions": ("evictions", "Connections that the daemon cut."),
    "commands": ("commands", "Executed commands."),
    "events": ("events", "Committed events sent to clients, counted once per client."),
    "commits": ("journal_commits", "Commits to the journal."),
    "transactions": ("journal_transactions", "Database transactions."),
    "synced": ("journal_synced_transactions", "Database transactions that were synced to disk."),
}
"""Counters, in the same form."""


class _Snapshot(Collector):
    """One scrape."""

    def __init__(self, found: Metrics) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Return the values that the system reports."""
        for field, (name, text) in GAUGES.items():
            value: float | None = getattr(self._found, field)
            if value is not None:
                yield GaugeMetricFamily(f"zotd_{name}", text, value=value)
        for field, (name, text) in COUNTERS.items():
            yield CounterMetricFamily(f"zotd_{name}", text, value=getattr(self._found, field))
        yield from map(_translated, self._found.families)


def exposition(found: Metrics) -> bytes:
    """Return the text, of the type `CONTENT_TYPE`."""
    registry = CollectorRegistry()
    registry.register(_Snapshot(found))
    return generate_latest(registry)


def _translated(family: MetricFamily) -> Metric:
    names = list(family.samples[0].labels) if family.samples else []
    match family.kind:
        case "histogram":
            found = HistogramMetricFamily(family.name, family.help, labels=names)
            for one in family.samples:
                found.add_metric(list(one.labels.values()), _buckets(family.bounds, one.counts), one.sum)
            return found
        case "counter":
            counters = CounterMetricFamily(family.name, family.help, labels=names)
            for one in family.samples:
                counters.add_metric(list(one.labels.values()), one.value)
            return counters
        case _:
            gauges = GaugeMetricFamily(family.name, family.help, labels=names)
            for one in family.samples:
                gauges.add_metric(list(one.labels.values()), one.value)
            return gauges


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return the buckets as Prometheus wants them: each includes those below it."""
    return list(zip([*map(str, bounds), "+Inf"], accumulate(counts), strict=True))
