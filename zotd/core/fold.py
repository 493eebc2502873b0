"""Folds a session's records into the transcript, and tracks which record holds the content of each message.

While a session runs, each record is applied as it is written. After a restart `replay` applies the records from `base`
on. Records abandoned by a rewind still determine pending inputs and request ids, but add no messages for the model.
"""

from collections.abc import Iterable, Sequence

import msgspec

from zotd.core import records
from zotd.core.lineage import Span, holds
from zotd.core.model_questions import SIDE_QUESTION
from zotd.core.records import AnyRecord
from zotd.core.transcript import Transcript
from zotd.wire.content import Block, Text, ToolCall


class Fold:
    """State of one session, computed from its records."""

    def __init__(self, transcript: Transcript, base: int = 1) -> None:
        """`base`: no earlier record holds a message of the transcript or a pending input."""
        self.transcript = transcript
        self._numbers: list[int] = []
        """For each message of the transcript, the number of the record that holds its content."""
        self._oldest = base
        """Lower bound for the records that hold messages. Not simply `_numbers[0]`: records are not in the order of the
        messages, because an input that waited during a run is older than the messages of that run."""
        self._inputs: dict[str, int] = {}
        self._asked = base
        """The record of the last request for an early summary."""
        self._planned = base
        """The record of the last news about the plan."""
        self._job_ended = base
        """The record of the oldest news about a job."""
        self._side = base
        """The record of the last question beside the conversation."""

    @property
    def base(self) -> int:
        """The first record that a restart has to read; earlier ones hold no visible message and no pending input."""
        waiting, oldest = self.transcript.waiting, self._oldest
        if self.transcript.early.sent is not None:  # its usage row is due, also after a crash
            oldest = min(oldest, self._asked)
        if self.transcript.plan_news is not None:
            oldest = min(oldest, self._planned)
        if self.transcript.job_news:
            oldest = min(oldest, self._job_ended)
        if SIDE_QUESTION in self.transcript.beside:
            oldest = min(oldest, self._side)
        return min([oldest, *[self._inputs[key] for key in waiting]]) if waiting else oldest

    @property
    def is_legal(self) -> bool:
        """Whether each call has its result, so that the conversation may continue from here."""
        return not self.transcript.open_calls

    def replay(self, numbered: Iterable[tuple[int, AnyRecord]], left: Sequence[Span]) -> None:
        """Apply numbered records, oldest first. Those in `left` were abandoned by a rewind."""
        for number, record in numbered:
            if holds(left, number):
                self._pass_over(number, record)
            else:
                self.apply(number, record)

    def apply(self, number: int, record: AnyRecord) -> None:
        """Fold in the record with this number."""
        before, news = len(self.transcript.messages), self.transcript.plan_news
        jobs = self.transcript.job_news
        self.transcript.apply(record)
        after = len(self.transcript.messages)
        match record:
            case records.Input(id=key):  # a message only when an attempt names it, see `_begun`
                self._inputs[key] = number
            case records.Attempt() if record.covers or record.asked_by:
                self._begin_beside(number, record)
            case records.Attempt(input=first, steered=steered):
                told = [self._job_ended] if jobs and not self.transcript.job_news else []
                told += [self._planned] if news is not None and self.transcript.plan_news is None else []
                begun = [*told, *self._begun([*([first] if first else []), *steered])]
                del self._numbers[after - len(begun) :]  # resuming a run drops the cut reply from the transcript
                self._numbers += begun
                self._oldest = min([self._oldest, *begun])
            case records.PlanChange() | records.JobEnded() if record.note:
                self._change_news(number, record)
            case records.Compaction(kept=kept):
                # The summary is in this record; the kept messages stay in theirs.
                self._numbers = [number, *(self._numbers[-kept:] if kept else [])]
                self._oldest = min(self._numbers)
            case records.Clear():
                self._numbers = []
                self._oldest = number + 1
            case records.ForkRow():  # pending inputs of the origin are not part of the fork
                self._inputs.clear()
            case _ if after > before:
                self._numbers.append(number)
            case _:
                pass

    def _begin_beside(self, number: int, record: records.Attempt) -> None:
        if record.covers:
            self._asked = number
        elif record.asked_by == SIDE_QUESTION:
            self._side = number

    def _change_news(self, number: int, record: records.PlanChange | records.JobEnded) -> None:
        if isinstance(record, records.PlanChange):
            self._planned = number
        elif len(self.transcript.job_news) == 1:  # the oldest that the model has not been told
            self._job_ended = number

    def go_back(self, past: "Fold") -> None:
        """Show the model what `past`, folded up to an earlier record, shows. The rewind's record is applied after."""
        then = past.transcript
        self.transcript.replace_messages(then.messages, then.allowed_tools, then.plan_news)
        self._numbers, self._oldest = past._numbers, past._oldest  # noqa: SLF001  (of the same class)
        self._planned = past._planned  # noqa: SLF001

    def _pass_over(self, number: int, record: AnyRecord) -> None:
        """Apply a record of an abandoned branch: it counts for pending inputs, runs and usage, but not as a message."""
        # The messages are hidden meanwhile, so that the record can neither add to them nor replace them.
        said, numbers, oldest, planned = (
            self.transcript.replace_messages([]),
            self._numbers,
            self._oldest,
            self._planned,
        )
        self._numbers = []
        self.apply(number, record)
        self.transcript.replace_messages(*said)
        self._numbers, self._oldest, self._planned = numbers, oldest, planned

    def _begun(self, keys: list[str]) -> list[int]:
        """Return the records of these inputs, if they were pending and have become messages."""
        found: list[int] = []
        for key in keys:
            if key in self._inputs and key not in self.transcript.waiting:
                found.append(self._inputs.pop(key))  # noqa: PERF401  (a comprehension is one call more for each prompt)
        return found


def outlined(record: AnyRecord) -> AnyRecord:
    """Return the record without its text, so that folding a long history takes little memory.

    Its fold has the same messages, calls and inputs as that of the original.
    """
    match record:
        case records.Input():
            return msgspec.structs.replace(record, content=[])
        case records.Reply(content=content):
            return msgspec.structs.replace(record, content=_outline(content))
        case records.CallResult() | records.ShellResult():
            return msgspec.structs.replace(record, content=[])
        case records.FileRestore(content=content) if content:
            return msgspec.structs.replace(record, content=[Text("")])
        case records.Compaction():
            return msgspec.structs.replace(record, summary="")
        case records.UsageRow(summary=summary) if summary:
            return msgspec.structs.replace(record, summary="")
        case _:
            return record


def _outline(content: list[Block]) -> list[Block]:
    # Calls are kept because results refer to their ids, and a text because an empty reply adds no message.
    calls: list[Block] = [ToolCall(block.id, block.name, {}) for block in content if isinstance(block, ToolCall)]
    return calls or ([Text("")] if content else [])
