"""Events that come in an order that nobody planned: what was asked, cut or refused comes to its end all the same."""

import asyncio
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from tests.permissions.test_approvals import Place, decision_about
from tests.runs.test_guarded_runs import Tool
from tests.sessions.desk import TIME, Desk, Watcher, new_row, session_of
from zotd.core import records
from zotd.core.permissions import Policy
from zotd.core.reply import CallArgs, CallEnd, CallStart, RequestAccepted, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.permissions.authorization import Authorization
from zotd.permissions.authorization_context import AuthorizationContext
from zotd.store.memory import Memory
from zotd.tasks import contained
from zotd.testing.script_model import ScriptModel, says
from zotd.wire import events
from zotd.wire.content import Text
from zotd.wire.errors import Code, CommandError


def unheard(_=None):
    """Nobody wants the answer."""


def calls_tool():
    return [[RequestAccepted(), CallStart(0, "bash"), CallArgs(0, '{"a": 1}'), CallEnd(0), Stopped("tool_use")]]


@dataclass
class Asking(Desk):
    """A planner whose runs ask people, in a session that is in the mode `mode`."""

    mode: str = "ask"
    refusal: str = ""
    """Why no run can start."""
    broken: bool = False
    """The next run cannot be prepared."""

    def check(self, settings, environment, spent):
        del settings, environment, spent
        if self.refusal:
            raise CommandError(Code.BUDGET_EXCEEDED, self.refusal)

    async def plan(self, session, first):
        made = await super().plan(session, first)
        if self.broken:
            self.broken = False
            raise OSError("no such disk")

        def recorded(call, digest):
            rows = session.ledger.transcript.approvals.values()
            return next((row.id for row in rows if (row.call_id, row.args_digest) == (call, digest)), None)

        bench = AuthorizationContext(
            policy=lambda: Policy(self.mode),
            approvals=session.approvals,
            cwd="/",
            home="/",
            run=lambda: session.ledger.transcript.run,
            recorded=recorded,
            way="park",
            notify=unheard,
        )
        return replace(made, authorization=Authorization(bench, lambda: None))


class Elsewhere(Memory):
    """A journal in a thread of its own, as the real one is: a look or a commit takes a turn of the loop at least."""

    async def partial(self, session):
        await asyncio.sleep(0)
        return await super().partial(session)

    def commit(self, row, entries, *, durable, done):
        loop = asyncio.get_running_loop()

        def soon(error):
            loop.call_soon(done, error)

        super().commit(row, entries, durable=durable, done=soon)


@dataclass
class Life:
    """A session that is stopped as by SIGTERM, and loaded by the next process."""

    tasks: asyncio.TaskGroup
    desk: Asking
    tool: Tool
    journal: Memory = field(default_factory=Elsewhere)
    watcher: Watcher = field(default_factory=Watcher)
    running: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self, row):
        spawn = lambda name, work: self.running.append(contained(self.tasks, name, work))  # noqa: E731
        self.session = session_of(row, self.journal, self.desk, spawn)
        self.session.ledger.subscribe(self.watcher)

    async def end(self):
        running, self.running = self.running, []
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def restart(self):
        self.session.abort(for_good=True)
        await self.session.stopped()
        await self.end()
        self.begin(await self.journal.row("s_1"))
        await self.session.load()

    async def prompt(self, text="go"):
        await self.session.prompt(text, [], sender="", when_busy="queue", accepted=unheard)

    async def asked(self):
        """Prompt, and the question that comes of it."""
        await self.prompt()
        return (await self.watcher.until(events.ApprovalRequested))[-1]

    async def decide(self, question, decision="allow"):
        await self.session.decide(decision_about(question, decision), "ann", accepted=unheard)

    async def done(self):
        """What is shown up to the end of a run, when nothing runs any more."""
        shown = await self.watcher.until(events.Done)
        await self.session.stopped()
        return shown

    async def row_state(self):
        row = await self.journal.row("s_1")
        assert row is not None
        return row.state


@pytest.fixture
async def life():
    """`life(reply, ...)`: a session that asks before it calls its only tool."""
    async with asyncio.TaskGroup() as tasks:
        made: list[Life] = []

        def life(*replies):
            tool = Tool("bash")
            tool.end.set()
            one = Life(tasks, Asking(ScriptModel(*replies), {"bash": tool}), tool)
            one.desk.ready.set()
            one.begin(new_row())
            made.append(one)
            return one

        yield life
        for one in made:
            await one.end()


def results(shown):
    found = [one.content[0] for one in shown if isinstance(one, events.ToolResultEvent)]
    return [block.text for block in found if isinstance(block, Text)]


def resolutions(shown):
    return [one.decision for one in shown if isinstance(one, events.ApprovalResolved)]


# --- the process ends while a person is asked ---------------------------------------------------------------------


async def test_a_question_survives_a_stop_with_its_id_and_its_answer_continues_the_run(life):
    case = life(calls_tool(), says("fine"))
    question = await case.asked()
    await case.restart()
    assert [one.approval for one in case.session.approvals.pending()] == [question.approval]
    assert (case.session.state, await case.row_state()) == ("waiting", "waiting")
    await case.watcher.until(events.Done)  # of the run that was cut
    await case.decide(question)
    assert results(await case.done()) == ["bash done"]
    assert (case.tool.began, case.session.state, await case.row_state()) == ([{"a": 1}], "idle", "idle")


async def test_a_session_that_waits_for_a_person_is_said_to_wait_while_it_is_being_looked_at(life):
    case = life(calls_tool(), says("fine"))
    await case.asked()
    await case.restart()
    await case.end()
    case.begin(await case.journal.row("s_1"))
    looking = case.tasks.create_task(case.session.load())
    seen = {case.session.state}
    while not looking.done():
        await asyncio.sleep(0)
        seen.add(case.session.state)
    assert seen == {"waiting"}


async def test_a_session_is_cut_until_what_a_crash_has_cut_is_shown(life):
    """Who attaches while another command repairs it waits for the repair, and so gets what it has found."""
    case = life(says("fine"))
    await case.prompt()
    await case.done()
    row = await case.journal.row("s_1")
    case.begin(replace(row, state="running"))  # as after a crash behind the last record, when nothing is left to resume
    repairing = case.tasks.create_task(case.session.load())
    while not repairing.done():
        assert case.session.is_cut
        await asyncio.sleep(0)
    assert not case.session.is_cut


async def test_no_decision_is_taken_while_the_process_ends(life):
    case = life(calls_tool(), says("fine"))
    question = await case.asked()
    case.session.abort(for_good=True)
    with pytest.raises(CommandError) as refused:
        await case.decide(question)
    assert (refused.value.code, case.tool.began) == (Code.SHUTTING_DOWN, [])
    await case.restart()
    assert [one.approval for one in case.session.approvals.pending()] == [question.approval]


async def test_a_stop_does_not_wait_for_a_question_that_would_not_outlive_it(life):
    """An extension makes the call, which ends with it; the run beside it is ended as any other."""
    gate = asyncio.Event()
    case = life([[RequestAccepted()], gate])
    await case.prompt()
    await case.watcher.until(events.AssistantStart)
    nested = case.tasks.create_task(
        case.session.approvals.ask("c_nested", "bash", {}, run="r", preview=None, ttl_s=None)
    )
    await case.watcher.until(events.ApprovalRequested)
    case.session.abort(for_good=True)
    await case.session.stopped()
    assert not case.session.approvals.is_frozen
    assert await case.row_state() == "idle"
    nested.cancel()


# --- a question that nobody has to answer any more ------------------------------------------------------------------


async def test_a_call_that_may_run_without_the_answer_does_not_leave_its_question_behind(life):
    case = life(calls_tool(), says("fine"))
    await case.asked()
    await case.restart()
    await case.watcher.until(events.Done)
    case.desk.mode = "yolo"
    case.tool.end.clear()
    await case.session.go_on(accepted=unheard)
    assert resolutions(await case.watcher.until(events.ApprovalResolved)) == ["cancelled"]
    case.tool.end.set()
    assert results(await case.done()) == ["bash done"]
    assert (case.session.state, await case.row_state()) == ("idle", "idle")


async def test_a_call_that_is_denied_meanwhile_does_not_leave_its_question_behind(life):
    case = life(calls_tool(), says("fine"))
    await case.asked()
    await case.restart()
    await case.watcher.until(events.Done)
    case.desk.mode = "read-only"
    await case.session.go_on(accepted=unheard)
    shown = await case.done()
    assert (resolutions(shown), case.tool.began, case.session.state) == (["cancelled"], [], "idle")


async def test_a_call_whose_tool_is_gone_does_not_leave_its_question_behind(life):
    case = life(calls_tool(), says("fine"))
    await case.asked()
    await case.restart()
    await case.watcher.until(events.Done)
    case.desk.tools.clear()
    await case.session.go_on(accepted=unheard)
    shown = await case.done()
    assert resolutions(shown) == ["cancelled"]
    assert case.session.state == "idle"


async def test_the_same_call_with_other_arguments_asks_anew_and_the_old_question_is_over():
    place = Place()
    async with asyncio.TaskGroup() as tasks:
        first, old = await place.asked(tasks)
        restarted = await place.restarted()
        _, new = await restarted.asked(tasks, args={"command": "git push --force"})
        assert restarted.approvals.pending() == [new]
        assert (await restarted.refused(old))[0] == Code.ALREADY_RESOLVED
        await restarted.decide(new, "deny")
        first.cancel()


async def test_a_question_about_a_call_of_an_extension_is_not_pending_after_a_restart():
    place = Place()
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks, "c_nested")
        assert (await place.restarted()).approvals.pending() == []
        await place.decide(question)
        await task
    transcript = place.ledger.transcript
    assert (transcript.approvals, transcript.decisions) == ({}, {}), "they would stay for ever"


async def test_an_abort_of_what_a_stop_has_cut_ends_the_question_and_the_session_is_held(life):
    case = life(calls_tool(), says("fine"))
    await case.asked()
    await case.restart()
    await case.watcher.until(events.Done)
    case.session.abort()
    assert resolutions(await case.watcher.until(events.ApprovalResolved)) == ["cancelled"]
    assert (case.session.state, await case.row_state()) == ("held", "held")
    await case.session.clear(accepted=unheard)
    assert (case.session.state, await case.row_state()) == ("idle", "idle")


async def test_every_abort_of_a_waiting_call_tells_of_the_question_before_the_end_of_the_run(life):
    case = life(calls_tool())
    await case.asked()
    case.session.abort()
    shown = await case.done()
    kinds = [type(one) for one in shown]
    assert kinds.index(events.ApprovalResolved) < kinds.index(events.ToolResultEvent) < kinds.index(events.Done)


# --- a run that cannot go on ----------------------------------------------------------------------------------------


async def test_a_decision_is_kept_when_the_run_cannot_continue_and_clients_get_the_reason(life):
    case = life(calls_tool(), says("fine"))
    question = await case.asked()
    await case.restart()
    await case.watcher.until(events.Done)
    case.desk.refusal = "nothing is left"
    await case.decide(question)
    notice = (await case.watcher.until(events.Notice))[-1]
    assert "nothing is left; /continue" in notice.text
    assert (case.session.state, await case.row_state()) == ("held", "held")
    case.desk.refusal = ""
    await case.session.go_on(accepted=unheard)
    shown = await case.done()
    assert (resolutions(shown), results(shown)) == ([], ["bash done"])


async def test_a_run_that_cannot_be_prepared_leaves_what_a_crash_has_cut_for_the_next_attempt(life):
    case = life(calls_tool(), says("fine"), says("two"))
    question = await case.asked()
    await case.prompt("two")
    await case.restart()
    await case.watcher.until(events.Done)
    case.desk.broken = True
    await case.session.go_on(accepted=unheard)
    await case.done()
    assert [one.approval for one in case.session.approvals.pending()] == [question.approval]
    await case.decide(question)
    assert results(await case.watcher.until(events.Done)) == ["bash done"]
    await case.done()
    assert [message.role for message in case.session.ledger.transcript.messages] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip


async def test_no_run_ends_twice_also_when_its_input_could_not_start_the_first_time(life):
    gate = asyncio.Event()
    case = life([[RequestAccepted()], gate, ModelError(Failure.REFUSED, "no")], says("one"), says("two"))
    await case.prompt("a")
    await case.prompt("b")
    gate.set()
    ended = [(await case.done())[-1].run]
    case.desk.broken = True
    await case.prompt("c")  # lets them go on: "b" cannot be prepared, and is held with "c"
    ended.append((await case.done())[-1].run)
    assert [item.text for item in case.session.work.queue.items()] == ["b", "c"]
    await case.session.go_on(accepted=unheard)
    for _ in range(3):
        ended.append((await case.watcher.until(events.Done))[-1].run)
        if not case.session.work.queue.items():
            break
    await case.session.stopped()
    assert len(set(ended)) == len(ended)


# --- memory ---------------------------------------------------------------------------------------------------------


def test_a_request_that_may_come_again_is_known_without_keeping_what_it_said():
    transcript = Transcript()
    said = records.Input(time=TIME, id="i", content=[Text("x" * 1000)], request_id="q", digest="d")
    transcript.apply(said)
    assert transcript.waiting["i"] == said
    assert transcript.requests["q"] == records.Known("q", "d", "i")


def test_a_request_is_known_although_a_summary_left_it_behind_and_a_restart_came():
    before = Transcript()
    before.apply(records.Input(time=TIME, id="i", content=[Text("x")], request_id="q", digest="d"))
    after = Transcript()
    after.apply(records.Compaction(time=TIME, summary="s", kept=0, known=before.known()))
    assert after.requests == before.requests
