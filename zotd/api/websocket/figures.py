"""`GET /metrics`: `daemon.metrics` in the text format of Prometheus. Only numbers, no names of users or sessions."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from zotd.wire.reports import Metrics

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


def exposition(found: Metrics) -> bytes:
    """Return the body of the response."""
    registry = CollectorRegistry()
    registry.register(_Snapshot(found))
    return generate_latest(registry)
