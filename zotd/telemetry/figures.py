"""Counts model requests, tool calls and runs since the start, for `daemon.metrics`.

Labels are bounded: a model, tool, extension or workspace beyond a limit counts as `other`.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.wire import events
from zotd.wire.content import Tokens
from zotd.wire.reports import MetricFamily, MetricSample

MAX_MODELS = 50
"""Models with figures of their own. A family has up to `MAX_MODELS` x `MAX_WORKSPACES` series of each kind."""

MAX_WORKSPACES = 20
"""Working directories with figures of their own."""

MAX_NAMES = 100
"""Tools with figures of their own, and extensions."""

OTHER = "other"
"""The label of everything beyond a limit."""

DURATION_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the buckets for durations in seconds: a `read` takes a millisecond, a test suite minutes."""

FIRST_TOKEN_S = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0, 120.0)
"""The same for the time to the first token."""

TOKENS_PER_SECOND = (1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0, 3000.0)
"""The same for the speed of a reply."""

Labels = tuple[str, ...]


class KnownLabels:
    """The values of a label that have series of their own: the first ones, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        """Return the value, or `other` if there are too many."""
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value


class Counts:
    """A family of counters."""

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        """`name` without the suffix `_total`."""
        self._name, self._text, self._labels = name, text, labels
        self._values: defaultdict[Labels, float] = defaultdict(float)

    def add(self, value: float, *labels: str) -> None:
        """Add to the counter with these label values."""
        self._values[labels] += value

    def family(self) -> MetricFamily:
        """Return the counters as they are now."""
        samples = [MetricSample(_named(self._labels, key), value) for key, value in self._values.items()]
        return MetricFamily(self._name, "counter", self._text, samples)


class Histogram:
    """A family of histograms."""

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        """`bounds`: the upper bounds of the buckets; what exceeds them all is in one more."""
        self._name, self._text, self._labels, self._bounds = name, text, labels, bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: defaultdict[Labels, float] = defaultdict(float)

    def observe(self, value: float, *labels: str) -> None:
        """Add a value to the histogram with these label values."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def family(self) -> MetricFamily:
        """Return the histograms as they are now."""
        samples = [
            MetricSample(_named(self._labels, key), sum(counts), list(counts), round(self._sums[key], 6))
            for key, counts in self._counts.items()
        ]
        return MetricFamily(self._name, "histogram", self._text, samples, list(self._bounds))


class RunFigures:
    """The figures of all sessions of this process since its start."""

    def __init__(self) -> None:
        where = ("provider", "model", "workspace")
        self._models, self._workspaces = KnownLabels(MAX_MODELS), KnownLabels(MAX_WORKSPACES)
        self._tools, self._extensions = KnownLabels(MAX_NAMES), KnownLabels(MAX_NAMES)
        self._tokens = Counts("zotd_model_tokens", "Tokens of model requests, by type.", (*where, "type"))
        self._cost = Counts("zotd_model_cost_usd", "Cost of model requests in USD, where it is known.", where)
        self._requests = Counts("zotd_model_requests", "Model requests that have ended.", where)
        self._errors = Counts(
            "zotd_model_request_errors", "Model requests that were not answered in full, by kind.", (*where, "error")
        )
        self._missed = Counts(
            "zotd_model_cache_missed_tokens",
            "Tokens that were read anew and that the vendor's cache should have had, by reason.",
            (*where, "reason"),
        )
        self._retries = Counts("zotd_model_retries", "Model requests that repeat a failed one.", where)
        self._seconds = Histogram(
            "zotd_model_request_duration_seconds", "Duration of answered model requests.", where, DURATION_S
        )
        self._first = Histogram(
            "zotd_model_time_to_first_token_seconds", "From the request to its first token.", where, FIRST_TOKEN_S
        )
        self._speed = Histogram(
            "zotd_model_output_tokens_per_second",
            "Output tokens a second, from the first token on.",
            where,
            TOKENS_PER_SECOND,
        )
        self._tool_seconds = Histogram(
            "zotd_tool_duration_seconds", "Duration of the model's tool calls.", ("tool", "workspace"), DURATION_S
        )
        self._tool_errors = Counts(
            "zotd_tool_errors",
            "Tool calls with an error as their result, also those that did not run.",
            ("tool", "workspace"),
        )
        self._guard_seconds = Histogram(
            "zotd_guard_duration_seconds", "Duration of guards' answers.", ("extension", "event"), DURATION_S
        )
        self._runs = Counts("zotd_runs", "Runs that have ended, by outcome.", ("outcome",))

    def watch(self, workspace: str) -> Callable[[Sequence[Shown]], None]:
        """Return a watcher (`Ledger.watchers`) for a session in this directory."""

        def committed(items: Sequence[Shown]) -> None:
            for item in items:
                match item.record:
                    case records.UsageRow() as row:
                        self._request(row, workspace)
                    case records.CallResult() as result:
                        self._call(result, workspace)
                    case records.Attempt(number=number, answered=False) as attempt if number > 1:
                        self._retries.add(1, *self._where(attempt.provider, attempt.model, workspace))
                    case _:
                        pass
                if item.shows and type(item.shows[-1]) is events.Done and (outcome := outcome_of(item.record)):
                    self._runs.add(1, outcome)

        return committed

    def guarded(self, extension: str, event: str, seconds: float) -> None:
        """Count an answer of a guard."""
        self._guard_seconds.observe(seconds, self._extensions.bounded(extension), event)

    def waiting(self, approvals: Iterable[tuple[str, int]]) -> MetricFamily:
        """Return how many calls wait for a decision, by workspace; `approvals` has a workspace and a number for each session."""
        counts = Counter[str]()
        for workspace, number in approvals:
            counts[self._workspaces.bounded(workspace)] += number
        samples = [MetricSample({"workspace": workspace}, number) for workspace, number in counts.items()]
        return MetricFamily("zotd_approvals_waiting", "gauge", "Tool calls that wait for a decision.", samples)

    def families(self) -> list[MetricFamily]:
        """Return all figures that are counted, as they are now; families without a series are included."""
        return [
            family.family()
            for family in (
                self._tokens,
                self._cost,
                self._requests,
                self._errors,
                self._missed,
                self._retries,
                self._seconds,
                self._first,
                self._speed,
                self._tool_seconds,
                self._tool_errors,
                self._guard_seconds,
                self._runs,
            )
        ]

    def _request(self, row: records.UsageRow, workspace: str) -> None:
        if row.took_s is None and not row.failure:
            return  # no request: a person has chosen what the model would have said
        where = self._where(row.provider, row.model, workspace)
        self._requests.add(1, *where)
        if row.failure:
            self._errors.add(1, *where, row.failure)
        if row.missed:
            self._missed.add(row.missed, *where, row.missed_because)
        tokens = row.tokens
        if tokens is not None:
            self._count(tokens, *where)
        if row.first_s is not None:
            self._first.observe(row.first_s, *where)
        if row.took_s is not None and not row.failure:
            self._seconds.observe(row.took_s, *where)
            written_s = row.took_s - (row.first_s or 0.0)
            if tokens is not None and tokens.output and row.first_s is not None and written_s > 0:
                self._speed.observe(tokens.output / written_s, *where)

    def _count(self, tokens: Tokens, *where: str) -> None:
        for kind in ("input", "output", "cache_read", "cache_write"):
            if count := getattr(tokens, kind):
                self._tokens.add(count, *where, kind)
        if tokens.cost_usd:
            self._cost.add(tokens.cost_usd, *where)

    def _call(self, result: records.CallResult, workspace: str) -> None:
        where = (self._tools.bounded(result.name), self._workspaces.bounded(workspace))
        if result.took_s is not None:
            self._tool_seconds.observe(result.took_s, *where)
        if result.is_error:
            self._tool_errors.add(1, *where)

    def _where(self, provider: str, model: str, workspace: str) -> tuple[str, str, str]:
        # Together, so that the name of a model beyond the limit does not stay with the name of its vendor.
        name = f"{provider}/{model}"
        asked = (provider, model) if self._models.bounded(name) == name else (OTHER, OTHER)
        return (*asked, self._workspaces.bounded(workspace))


def outcome_of(last: records.AnyRecord) -> str:
    """How a run ended that ends with this record: `end_turn`, `error`, `aborted` or `cut`; a compaction: `compacted`.

    Empty: it was no run, but a person's command.
    """
    match last:
        case records.ShellResult():
            return ""
        case records.Note(level="error"):
            return "error"
        case records.Note(text=text):
            return text if text in {"end_turn", "compacted"} else "aborted"
        case records.Interrupted():
            return "cut"
        case _:
            return "end_turn"


def _named(names: Labels, values: Labels) -> dict[str, str]:
    return dict(zip(names, values, strict=True))
