"""Session histories as a driver may write them, for tests of whoever folds or stores records.

Plain Python: whoever tests brings the choices, from Hypothesis or from a list.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from zotd.core import compaction, records
from zotd.core.records import AnyRecord
from zotd.core.transcript import Transcript
from zotd.wire.content import Block, Text, Thinking, ToolCall

TIME = "2026-11-21T20:11:18.919Z"

MAX_CALLS = 3
"""Calls of one reply: enough for a middle one."""

Commit = list[AnyRecord]
"""Records that are stored together or not at all."""


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
            if self.transcript.waiting:
                yield from self._held() if self.transcript.held else self._run(next(iter(self.transcript.waiting)), [])
            else:
                yield from self._idle()

    def repair(self) -> Commit:
        """What a restart writes first: a result for every cut call, a word about the cut run, the queue held."""
        commit: Commit = [*self.transcript.repairs(TIME)]
        if self.transcript.run_open:
            commit.append(records.Interrupted(time=TIME, what="run", text="cut"))
        if self.transcript.waiting and not self.transcript.held:
            commit.append(self._order(held=True))
        return commit

    # --- between runs -----------------------------------------------------------------------------------------

    def _idle(self) -> Iterator[Commit]:
        match self.choose(6):
            case 0 | 1 | 2:
                prompt = self._input()
                yield from self._run(prompt.id, [prompt])
            case 3:
                yield [records.Clear(time=TIME)]
            case 4:
                yield [self._compaction()]
            case _:
                yield [self._config()]

    def _held(self) -> Iterator[Commit]:
        match self.choose(6):
            case 0:
                yield [self._order(held=False)]
            case 1:
                yield self._enqueue()
            case 2:
                waiting = list(self.transcript.waiting)
                waiting.pop(self.choose(len(waiting)))
                yield [records.QueueOrder(time=TIME, order=waiting, held=bool(waiting))]
            case 3:
                yield [records.QueueOrder(time=TIME, order=[*self.transcript.waiting][::-1], held=True)]
            case 4:
                yield [self._compaction()]
            case _:
                yield [records.Clear(time=TIME)]

    def _enqueue(self) -> Commit:
        prompt = self._input()
        order = records.QueueOrder(time=TIME, order=[*self.transcript.waiting, prompt.id], held=False)
        return [prompt, order]

    # --- a run ------------------------------------------------------------------------------------------------

    def _run(self, prompt: str, commit: Commit) -> Iterator[Commit]:
        """One run; now and then somebody enqueues a prompt in the middle."""
        for step in self._steps(self._new("r"), prompt, commit):
            yield step
            if self.choose(3) == 2:
                yield self._enqueue()

    def _steps(self, run: str, prompt: str, commit: Commit) -> Iterator[Commit]:
        first: str | None = prompt
        for step in count(1):
            yield [*commit, self._attempt(run, step, first)]
            if self.choose(4) == 3:
                yield [self._attempt(run, step, None, number=2)]
            first, commit = None, []
            yield [self._attempt(run, step, None, answered=True)]
            match self.choose(4):
                case 0:
                    yield [self._reply(run, step, [Text("well"), *self._words()], "end_turn")]
                    return
                case 1:
                    stop = ("error", "aborted")[self.choose(2)]
                    yield [self._reply(run, step, self._words(), stop), *self._failed()]
                    return
                case _:
                    cut = yield from self._calls(run, step)
            if cut:
                return
            if self.choose(2) == 1:
                commit = [self._compaction()]

    def _calls(self, run: str, step: int) -> Generator[Commit, None, bool]:
        """A reply with calls and their results; returns whether the run was aborted among them."""
        names = [self._new("c") for _ in range(1 + self.choose(MAX_CALLS))]
        calls = [ToolCall(name, "bash", {}) for name in names]
        started: Commit = [
            records.CallStarted(time=TIME, run=run, call_id=name, name="bash", args={}, replay="never")
            for name in names
            if self.choose(2)
        ]
        yield [self._reply(run, step, [*self._words(), *calls], "tool_use"), *started]
        while names:
            if self.choose(6) == 5:
                yield [*(self._result(run, name) for name in names), *self._failed()]
                return True
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

    def _input(self) -> records.Input:
        name = self._new("i")
        return records.Input(time=TIME, id=name, content=[Text(f"do {name}")])

    def _order(self, *, held: bool) -> records.QueueOrder:
        return records.QueueOrder(time=TIME, order=list(self.transcript.waiting), held=held)

    def _compaction(self) -> records.Compaction:
        kept = compaction.kept(self.transcript.messages)
        return records.Compaction(time=TIME, summary=self._new("summary"), kept=kept)

    def _config(self) -> records.Config:
        return records.Config(time=TIME, settings=records.Settings(provider="p", model="m"), name="n")

    def _attempt(
        self, run: str, step: int, prompt: str | None, *, number: int = 1, answered: bool = False
    ) -> records.Attempt:
        return records.Attempt(
            time=TIME, run=run, step=step, number=number, provider="p", model="m", input=prompt, answered=answered
        )

    def _reply(self, run: str, step: int, content: Sequence[Block], stop: str) -> records.Reply:
        return records.Reply(time=TIME, run=run, step=step, content=list(content), stop=stop)

    def _result(self, run: str, name: str) -> records.CallResult:
        return records.CallResult(
            time=TIME, run=run, call_id=name, name="bash", is_error=False, content=[Text(f"result of {name}")]
        )
