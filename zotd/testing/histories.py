"""Session histories as a driver may write them, for tests of whoever folds or stores records.

Plain Python: whoever tests brings the choices, from Hypothesis or from a list.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from msgspec.structs import replace

from zotd.core import compaction, records
from zotd.core.closings import closings, unrepeatable
from zotd.core.early_summary import PURPOSE
from zotd.core.model_questions import SAMPLING
from zotd.core.records import AnyRecord
from zotd.core.transcript import Transcript
from zotd.wire.content import Block, Message, Text, Thinking, ToolCall, ToolResult

TIME = "2026-11-21T20:11:18.919Z"

MAX_CALLS = 3
"""Calls of one reply: enough for a middle one."""

Commit = list[AnyRecord]
"""Records that are stored together or not at all."""


def assert_legal(messages: Sequence[Message]) -> None:
    """Each call has exactly one result, which follows its message before anything else does."""
    assert not messages or messages[0].role == "user"
    seen: set[str] = set()
    unanswered: set[str] = set()
    for message in messages:
        if message.role == "tool":
            [block] = message.content
            assert isinstance(block, ToolResult)
            unanswered.remove(block.call_id)
            continue
        assert not unanswered
        calls = [block.id for block in message.content if isinstance(block, ToolCall)]
        assert message.role == "assistant" or not calls
        assert message.content
        assert len(calls) == len(set(calls))
        assert seen.isdisjoint(calls)
        unanswered.update(calls)
        seen.update(calls)
    assert not unanswered


@dataclass
class Scribe:
    """Writes one session's records without end; to stop asking for the next commit is a crash.

    The caller folds each commit into `transcript` before it asks for the next one.
    """

    choose: Callable[[int], int]
    """A number from 0 to below its argument; 0 is the plainest choice."""
    transcript: Transcript
    _ids: Iterator[int] = field(default_factory=count)

    def life(self) -> Iterator[Commit]:
        """What a session commits from its start, or restart, on."""
        while True:
            if self.transcript.can_resume and self.choose(3) == 1:
                yield from self._go_on()
            elif not self.transcript.waiting:
                yield from self._idle()
            elif self.transcript.held:
                yield from self._held()
            else:
                yield from self._run(next(iter(self.transcript.waiting)), [])

    def repair(self) -> Commit:
        """What a restart writes first: it closes what is not gone on with, says what was cut, holds the queue."""
        sent = self.transcript.early.sent
        commit: Commit = [replace(self._usage(sent.run, sent.step), purpose=PURPOSE)] if sent is not None else []
        commit += [
            replace(self._usage(asked.run, 0), purpose=purpose) for purpose, asked in self.transcript.beside.items()
        ]
        if self.transcript.shell is not None:
            commit.append(self._shell_result(self.transcript.shell, unknown=True))
        if self.transcript.run_open:
            cut = records.Interrupted(time=TIME, what="run", text="cut")
            commit += [*unrepeatable(self.transcript, TIME), *self._unbilled(), cut]
        if self.transcript.waiting and not self.transcript.held:
            commit.append(self._order(held=True))
        return commit

    # --- between runs -----------------------------------------------------------------------------------------

    def _idle(self) -> Iterator[Commit]:
        match self.choose(7):
            case 0 | 1 | 2:
                prompt = self._input()
                yield from self._run(prompt.id, [prompt])
            case 3:
                yield [records.Clear(time=TIME)]
            case 4:
                yield from self._compact()
            case 5:
                yield [self._config()]
            case _:
                yield from self._shell()

    def _held(self) -> Iterator[Commit]:
        match self.choose(6):
            case 0:
                yield [self._order(held=False)]
            case 1:
                yield self._enqueue(steers=False)
            case 2:
                waiting = list(self.transcript.waiting)
                waiting.pop(self.choose(len(waiting)))
                yield [records.QueueOrder(time=TIME, order=waiting, held=bool(waiting))]
            case 3:
                yield [records.QueueOrder(time=TIME, order=[*self.transcript.waiting][::-1], held=True)]
            case 4:
                yield from self._compact()
            case _:
                yield [records.Clear(time=TIME)]

    def _compact(self) -> Iterator[Commit]:
        """Somebody asks for it."""
        yield from self._close()
        run = self._new("r")
        yield [self._attempt(run, 0, None, number=0)]
        yield [self._usage(run, 0), self._compaction(), records.Note(time=TIME, level="info", text="compacted")]

    def _shell(self) -> Iterator[Commit]:
        """A person runs a command, which the model sees or not, and not between a call and its result."""
        context = self.choose(2) == 0 and not self.transcript.open_calls
        started = records.ShellStarted(time=TIME, id=self._new("r"), command="ls", context=context)
        yield [started]
        yield [self._shell_result(started)]

    def _close(self) -> Iterator[Commit]:
        """Calls that a crash has left open get their results before anything but going on with them."""
        if self.transcript.open_calls:
            yield [*closings(self.transcript, TIME)]

    def _enqueue(self, *, steers: bool) -> Commit:
        prompt = self._input("steer" if steers else "queue")
        order = records.QueueOrder(time=TIME, order=[*self.transcript.waiting, prompt.id], held=False)
        return [prompt, order]

    # --- a run ------------------------------------------------------------------------------------------------

    def _run(self, prompt: str, commit: Commit) -> Iterator[Commit]:
        yield from self._close()
        yield from self._disturbed(self._steps(self._new("r"), prompt, commit))

    def _go_on(self) -> Iterator[Commit]:
        """A run that begins where the last one was cut, failed or was aborted."""
        if self.transcript.held:
            yield [self._order(held=False)]
        yield from self._disturbed(self._resumed(self._new("r")))

    def _disturbed(self, run: Iterator[Commit]) -> Iterator[Commit]:
        """A run; now and then somebody sends a prompt in the middle."""
        for step in run:
            yield step
            if self.choose(3) == 2:
                yield self._enqueue(steers=self.choose(2) == 1)

    def _resumed(self, run: str) -> Iterator[Commit]:
        yield [self._attempt(run, 0, None, number=0, resumes=True)]
        cut = yield from self._results(run, [call.id for call in self.transcript.open_calls])
        if not cut:
            yield from self._steps(run, None, [])

    def _steps(self, run: str, prompt: str | None, commit: Commit) -> Iterator[Commit]:
        first = prompt
        for step in count(1):
            yield [*commit, self._attempt(run, step, first, steered=self._steering(first))]
            if self.choose(4) == 3:
                yield [self._usage(run, step), self._attempt(run, step, None, number=2)]
            first, commit = None, []
            yield from self._early(run, step)
            yield [self._attempt(run, step, None, answered=True)]
            match self.choose(4):
                case 0:
                    said: Commit = [self._reply(run, step, [Text("well"), *self._words()], "end_turn")]
                    if not self._steering(None):
                        yield said
                        return
                    commit = said  # in one commit with the attempt that they join with
                    continue
                case 1:
                    stop = ("error", "aborted")[self.choose(2)]
                    yield [self._usage(run, step), self._reply(run, step, self._words(), stop), *self._failed()]
                    return
                case _:
                    cut = yield from self._calls(run, step)
            if cut:
                return
            if self.choose(2) == 1:
                commit = [self._compaction()]

    def _early(self, run: str, step: int) -> Iterator[Commit]:
        """Beside the run, a summary is requested, or the request of an earlier step ends."""
        early, wanted = self.transcript.early, self.choose(3) == 0
        if wanted and early.may_begin:
            covers = len(self.transcript.messages) - compaction.kept(self.transcript.messages)
            yield [replace(self._attempt(run, step, None, number=0), covers=covers)]
        elif wanted and early.sent is not None:
            row = self._usage(early.sent.run, early.sent.step)
            yield [replace(row, purpose=PURPOSE, summary=self._new("early"))]

    def _calls(self, run: str, step: int) -> Generator[Commit, None, bool]:
        """A reply with calls and their results; returns whether the run was aborted among them."""
        names = [self._new("c") for _ in range(1 + self.choose(MAX_CALLS))]
        calls = [ToolCall(name, "bash", {}) for name in names]
        started: Commit = [record for name in names for record in self._started(run, name)]
        yield [self._reply(run, step, [*self._words(), *calls], "tool_use"), *started]
        return (yield from self._results(run, names))

    def _results(self, run: str, names: list[str]) -> Generator[Commit, None, bool]:
        while names:
            if self.choose(6) == 5:
                yield [*(self._result(run, name) for name in names), *self._failed()]
                return True
            if self.choose(4) == 3:  # the tool asks the model
                yield [replace(self._attempt(run, 0, None, number=0), asked_by=names[0])]
                yield [replace(self._usage(run, 0), purpose=SAMPLING)]
            yield [self._result(run, names.pop(self.choose(len(names))))]
        return False

    def _failed(self) -> Commit:
        note: AnyRecord = records.Note(time=TIME, level="info", text="aborted")
        return [note, self._order(held=True)] if self.transcript.waiting else [note]

    # --- records ----------------------------------------------------------------------------------------------

    def _new(self, kind: str) -> str:
        return f"{kind}_{next(self._ids)}"

    def _words(self) -> list[Block]:
        said: tuple[list[Block], ...] = ([], [Text("so")], [Thinking("hm", "signed"), Text("so")])
        return said[self.choose(len(said))]

    def _input(self, mode: str = "queue") -> records.Input:
        name = self._new("i")
        return records.Input(time=TIME, id=name, content=[Text(f"do {name}")], mode=mode)

    def _steering(self, first: str | None) -> list[str]:
        """The inputs that join the run whose own one is `first`."""
        return [key for key, waits in self.transcript.waiting.items() if waits.mode == "steer" and key != first]

    def _unbilled(self) -> Commit:
        sent = self.transcript.in_flight
        return [self._usage(sent.run, sent.step)] if sent else []

    def _usage(self, run: str, step: int) -> records.UsageRow:
        return records.UsageRow(time=TIME, run=run, step=step, provider="p", model="m", tokens=None)

    def _order(self, *, held: bool) -> records.QueueOrder:
        return records.QueueOrder(time=TIME, order=list(self.transcript.waiting), held=held)

    def _compaction(self) -> records.Compaction:
        messages = self.transcript.messages
        if (early := self.transcript.early.usable(messages, sys.maxsize)) is not None:
            return records.Compaction(time=TIME, summary=early.text, kept=len(messages) - early.covers)
        return records.Compaction(time=TIME, summary=self._new("summary"), kept=compaction.kept(messages))

    def _config(self) -> records.ConfigRecord:
        return records.ConfigRecord(time=TIME, settings=records.Settings(provider="p", model="m"), name="n")

    def _attempt(
        self,
        run: str,
        step: int,
        prompt: str | None,
        *,
        number: int = 1,
        answered: bool = False,
        resumes: bool = False,
        steered: Sequence[str] = (),
    ) -> records.Attempt:
        return records.Attempt(
            time=TIME,
            run=run,
            step=step,
            number=number,
            provider="p",
            model="m",
            input=prompt,
            answered=answered,
            resumes=resumes,
            steered=list(steered),
        )

    def _started(self, run: str, name: str) -> Commit:
        """Nothing for a safe call; else what is on record before it runs: its class, or a call that it led to."""
        how = self.choose(6)
        if how in {0, 1}:
            return []
        nested = how == 2
        record = records.CallStarted(
            time=TIME,
            run=run,
            call_id=self._new("c") if nested else name,
            name="bash",
            args={},
            replay=("never", "idempotent", "reconcile")[how % 3],
            within=name if nested else None,
        )
        return [record]

    def _shell_result(self, started: records.ShellStarted, *, unknown: bool = False) -> records.ShellResult:
        said: list[Block] = [Text(f"what {started.id} said")]
        return records.ShellResult(time=TIME, id=started.id, context=started.context, content=said, unknown=unknown)

    def _reply(self, run: str, step: int, content: Sequence[Block], stop: str) -> records.Reply:
        return records.Reply(time=TIME, run=run, step=step, content=list(content), stop=stop)

    def _result(self, run: str, name: str) -> records.CallResult:
        return records.CallResult(
            time=TIME, run=run, call_id=name, name="bash", is_error=False, content=[Text(f"result of {name}")]
        )
