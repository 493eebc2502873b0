"""`GET /metrics`: what `daemon.metrics` says, in the text format of Prometheus. Numbers, and no name of anything."""

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
"""Field of `Metrics` to the name behind `zotd_`, and its help."""

COUNTERS = {
    "connections": ("connections", "Accepted connections."),
    "evictions": ("evictions", "Connections that the daemon cut."),
    "commands": ("commands", "Executed commands."),
    "events": ("events", "Committed events sent to clients, counted once per client."),
    "commits": ("journal_commits", "Commits to the journal."),
    "transactions": ("journal_transactions", "Database transactions."),
    "synced": ("journal_synced_transactions", "Database transactions that were synced to disk."),
}
"""The same, of what only grows."""


class _Snapshot(Collector):
    """One set of figures."""

    def __init__(self, found: Metrics) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Those that the system tells."""
        for field, (name, text) in GAUGES.items():
            value: float | None = getattr(self._found, field)
            if value is not None:
                yield GaugeMetricFamily(f"zotd_{name}", text, value=value)
        for field, (name, text) in COUNTERS.items():
            yield CounterMetricFamily(f"zotd_{name}", text, value=getattr(self._found, field))


def exposition(found: Metrics) -> bytes:
    """The body of the answer."""
    registry = CollectorRegistry()
    registry.register(_Snapshot(found))
    return generate_latest(registry)
