"""What must be true of a home whose daemon was killed, from three witnesses: its database, the effects, the clients.

The database is read as it is, by its tables and the types of its records; what the daemon makes of it is not asked.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from tests.faults.client import Seen, Sender
from tests.faults.stored import problems, stored
from tests.faults.workload import EDITED, KEY, TOOLS, WITNESS, WRITTEN
from zotd.client import frames
from zotd.core import records
from zotd.core.ports import Replay
from zotd.core.records import AnyRecord
from zotd.store.connection import SqlConnection
from zotd.store.queries import records_from
from zotd.testing.dialects import OpenAI
from zotd.testing.live_daemon import DaemonPaths
from zotd.testing.model_server import Received
from zotd.wire.base import ENCODER
from zotd.wire.content import ToolCall
from zotd.wire.events import AnyEvent

SEEN = "seen"
"""Where `sweep` puts what `write` has written, below the working directory."""


class Promise(StrEnum):
    """What was promised, as the opposite of it is counted."""

    NEVER = "tools with `never` run twice"
    INPUT = "accepted inputs lost, or run twice"
    RESULT = "calls without a result, or with two"
    OPERATION = "operations repeated unasked, or under another key"
    HISTORY = "illegal histories sent to a model"
    EVENTS = "events lost, doubled or out of order"
    OTHER = "other faults"


@dataclass(frozen=True, slots=True)
class Problem:
    """A promise that was not kept."""

    promise: Promise
    sentence: str


@dataclass
class Findings:
    """What was looked at, and what was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    """`inputs`, `calls`, `effects`, …"""
    problems: list[Problem] = field(default_factory=list)
    """Empty: every promise was kept."""

    def complain(self, promise: Promise, *sentences: str) -> None:
        """Note problems."""
        self.problems += [Problem(promise, sentence) for sentence in sentences]

    def add(self, other: "Findings") -> None:
        """Sum up."""
        self.counts += other.counts
        self.problems += other.problems


@dataclass(frozen=True, slots=True)
class Effect:
    """A line of the witness: a tool ran, or was asked what became of an operation."""

    tool: str
    key: str
    operation: str
    what: str


@dataclass
class Story:
    """A session's records, sorted by what they are about."""

    inputs: list[records.Input] = field(default_factory=list)
    starts: Counter[str] = field(default_factory=Counter)
    """Of each input."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, list[records.CallResult]] = field(default_factory=lambda: defaultdict(list))
    started: dict[str, list[records.CallStarted]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)

    def tell(self, record: AnyRecord) -> None:
        """Add one, oldest first."""
        match record:
            case records.Input():
                self.inputs.append(record)
            case records.Attempt(answered=False):
                self.starts.update([*([record.input] if record.input else []), *record.steered])
            case records.Reply():
                self.calls |= {block.id: block for block in record.content if isinstance(block, ToolCall)}
            case records.CallStarted():
                self.started[record.call_id].append(record)
            case records.CallResult():
                self.results[record.call_id].append(record)
            case records.Note(level="error"):
                self.errors.append(record.text)
            case _:
                pass


def look(place: DaemonPaths, clients: Sequence[tuple[Sender, Seen]], findings: Findings) -> None:
    """Look at the database and the effects, when all is at rest and the daemon has ended."""
    findings.complain(Promise.OTHER, *problems(place))
    findings.complain(Promise.NEVER, *(f"write {key} ran more than once" for key in sweep(place.cwd)))
    effects = _effects(place.cwd)
    findings.counts["effects"] += len(effects)
    with stored(place) as connection:
        for sender, watcher in clients:
            story = Story()
            for record in records_from(connection, sender.seen.session, 1):
                story.tell(record)
            events = _stored_events(connection, sender.seen.session)
            _look_at_inputs(sender, story, findings)
            _look_at_calls(story, effects, findings)
            for seen, name in ((sender.seen, "sender"), (watcher, "follower")):
                findings.complain(Promise.OTHER, *seen.problems)
                _look_at_events(name, seen, events, findings)
            findings.complain(
                Promise.OTHER, *(f"{sender.seen.session}: a run failed: {error}" for error in story.errors)
            )
    _look_at_effects(effects, findings)


def look_at_requests(requests: Iterable[Received], findings: Findings) -> None:
    """Each request that the model got has to be one that a vendor would take."""
    judge = OpenAI()
    for request in requests:
        findings.counts["requests"] += 1
        problem = judge.problem(request.body)
        if problem is not None:
            findings.complain(Promise.HISTORY, f"the model got an illegal history: {problem}")


def sweep(cwd: Path) -> list[str]:
    """Move the files that `write` has written to `SEEN`, between two daemons; return the names of those that are there already."""
    seen = cwd / SEEN
    seen.mkdir(exist_ok=True)
    twice = []
    for path in sorted((cwd / WRITTEN).glob("k*")):
        if (seen / path.name).exists():
            twice.append(path.name)
        else:
            path.rename(seen / path.name)
    return twice


# --- inputs, calls, events ------------------------------------------------------------------------------------


def _look_at_inputs(sender: Sender, story: Story, findings: Findings) -> None:
    session = sender.seen.session
    known = {record.id for record in story.inputs}
    findings.counts["inputs"] += len(known)
    for sent in sender.sent:
        if sent.answer is not None and sent.answer.input not in known:
            findings.complain(Promise.INPUT, f"{session}: {sent.request} was accepted and is lost")
    for request, times in Counter(record.request_id for record in story.inputs).items():
        if times > 1:
            findings.complain(Promise.INPUT, f"{session}: {request} was accepted {times} times")
    for record in story.inputs:
        if story.starts[record.id] != 1:
            findings.complain(
                Promise.INPUT, f"{session}: {record.request_id} was started {story.starts[record.id]} times"
            )


def _look_at_calls(story: Story, effects: Sequence[Effect], findings: Findings) -> None:
    ran = Counter(effect.key for effect in effects if effect.what == "ran")
    findings.counts["calls"] += len(story.calls)
    for key, call in story.calls.items():
        results = story.results[key]
        if len(results) != 1:
            findings.complain(Promise.RESULT, f"call {key} of {call.name} has {len(results)} results")
            continue
        findings.counts["calls cut" if results[0].is_error else "calls answered"] += 1
        mark = _key(call)
        if mark and not results[0].is_error and TOOLS[call.name] is Replay.NEVER and ran[mark] != 1:
            findings.complain(Promise.NEVER, f"call {key} of {call.name} has a result, and ran {ran[mark]} times")
        if len({record.operation_key for record in story.started[key]}) > 1:
            findings.complain(Promise.OPERATION, f"call {key} of {call.name} was recorded with several operation keys")


def _look_at_events(name: str, seen: Seen, stored: Sequence[AnyEvent], findings: Findings) -> None:
    findings.counts["events"] += len(seen.events)
    if seen.events == list(stored):
        return
    numbers = [event.seq for event in seen.events]
    doubled = [number for number, times in Counter(numbers).items() if times > 1]
    lost = sorted({event.seq or 0 for event in stored} - {number or 0 for number in numbers})
    said = f"lost {lost[:5]}, doubled {doubled[:5]}" if lost or doubled else "not the events that are stored"
    text = f"{seen.session}: the {name} got {len(numbers)} of {len(stored)} events: {said}"
    findings.complain(Promise.EVENTS, text)


# --- effects --------------------------------------------------------------------------------------------------


def _look_at_effects(effects: Sequence[Effect], findings: Findings) -> None:
    by_key: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        by_key[effect.key].append(effect)
    for key, those in by_key.items():
        ran = [effect for effect in those if effect.what == "ran"]
        replay = TOOLS[those[0].tool]
        if len(ran) > 1:
            findings.counts[f"run again: {replay}"] += 1
        if replay is Replay.NEVER and len(ran) > 1:
            findings.complain(Promise.NEVER, f"{those[0].tool} {key} ran {len(ran)} times")
        if replay in {Replay.IDEMPOTENT, Replay.RECONCILE} and len({effect.operation for effect in those} - {"-"}) != 1:
            findings.complain(Promise.OPERATION, f"{those[0].tool} {key} has no operation key, or several: {those}")
        if replay is Replay.RECONCILE:
            findings.counts["asked first"] += len(those) - len(ran)
            findings.complain(Promise.OPERATION, *_unasked(key, those))


def _unasked(key: str, those: Sequence[Effect]) -> list[str]:
    """A repetition of a `reconcile` tool has to follow its own word that nothing was done."""
    found = []
    for before, effect in pairwise(those):
        if effect.what == "ran" and before.what != "not_started":
            found.append(f"transfer {key} ran again after it said {before.what}")
    return found


def _effects(cwd: Path) -> list[Effect]:
    """What was written down, in order; a line of `edit` counts as one, too, and so does a file of `write`."""
    witness = cwd / WITNESS
    lines = witness.read_text(encoding="utf-8").splitlines() if witness.exists() else []
    found = [Effect(*line.split()) for line in lines]
    for path in cwd.glob(f"{EDITED}-*"):
        found += [Effect("edit", key, "-", "ran") for key in KEY.findall(path.read_text(encoding="utf-8"))]
    found += [Effect("write", path.name, "-", "ran") for path in (cwd / SEEN).iterdir()]
    return found


def _key(call: ToolCall) -> str | None:
    found = re.search(KEY, ENCODER.encode(call.args).decode())
    return found[0] if found else None


def _stored_events(connection: SqlConnection, session: str) -> list[AnyEvent]:
    query = """
        SELECT events FROM records WHERE session = (SELECT key FROM sessions WHERE id = ?) AND first_seq > 0
        ORDER BY first_seq
    """
    data = b"".join(lines for (lines,) in connection.execute(query, (session,)))
    return [frame for frame in frames.decode(data) if not isinstance(frame, frames.ResponseFrame)]
