"""Questions about calls: on disk before anybody sees them, decided once, and there again after a restart."""

import asyncio

import pytest

from tests.ledger.test_ledger import Follower, Journals, new_row
from zotd.core import records
from zotd.core.choices import of_rule
from zotd.core.permissions import Action, PermissionRule, digest
from zotd.core.ports import StorageError
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger
from zotd.permissions.approvals import SessionApprovals, asked
from zotd.permissions.decisions import ApprovalAnswer
from zotd.store.memory import Memory
from zotd.wire import api, events
from zotd.wire.content import Block, ToolCall
from zotd.wire.errors import Code, CommandError

ARGS: dict[str, object] = {"command": "git push"}
RULE = PermissionRule("bash", Action.ALLOW, "git push")
TOML = '[[rules]]\ntool = "bash"\nmatch = "git push"\naction = "allow"\n'
PAST = "2020-01-01T00:00:01.000Z"


class Place:
    """One session's approvals, on a journal that commits at once."""

    def __init__(self, journal=None, row=None):
        self.journal = journal or Memory()
        self.ledger = Ledger(row or new_row(), self.journal, calling(), addressed=True)
        self.changes: list[int] = []
        self.changed = asyncio.Event()
        self.approvals = SessionApprovals(self.ledger, changed=self.note_change)
        self.follower = Follower()
        self.ledger.subscribe(self.follower)
        self.log = self.follower.log

    def note_change(self):
        self.changes.append(len(self.approvals.pending()))
        self.changed.set()

    async def restarted(self):
        """The same after the process was killed."""
        place = Place(self.journal, self.ledger.row)
        place.ledger.load(await self.journal.records(place.ledger.row.id, 1))
        place.approvals.restore(place.ledger.transcript)
        return place

    def ask(self, tasks, key="c_1", args=None, **fields):
        given = {"run": "r_1", "preview": "git push", "ttl_s": None, "choices": (of_rule(RULE),)} | fields
        return tasks.create_task(self.approvals.ask(key, "bash", args or ARGS, **given))

    async def asked(self, tasks, *args, **fields):
        """The task that waits, and its question as clients see it."""
        self.changed.clear()
        task = self.ask(tasks, *args, **fields)
        await self.changed.wait()
        return task, self.approvals.pending()[-1]

    async def decide(self, question, decision="allow", by="ann", **fields):
        """Decide, and write into the log when the answer went out."""
        params = decision_about(question, decision, **fields)
        await self.approvals.decide(params, by, lambda: self.log.append("response"))

    async def refused(self, question, decision="allow", by="ben", **fields):
        with pytest.raises(CommandError) as caught:
            await self.decide(question, decision, by, **fields)
        return caught.value.code, caught.value.sentence

    async def stored(self, kind):
        return [one for one in await self.journal.records(self.ledger.row.id, 1) if isinstance(one, kind)]


class SlowPlace(Place):
    """The same on a journal that keeps everything back until it is told to go on."""

    def __init__(self):
        self.journals = Journals()
        super().__init__(self.journals)

    async def asked_and_committed(self, tasks):
        """The task that waits, and its question, which is on disk."""
        task = self.ask(tasks)
        await asyncio.sleep(0)
        self.journals.commit_next()
        return task, self.approvals.pending()[-1]


def calling():
    """A transcript in which two calls have no result yet."""
    transcript = Transcript()
    made: list[Block] = [ToolCall(key, "bash", ARGS) for key in ("c_1", "c_2")]
    transcript.apply(records.Reply(time=PAST, run="r_1", step=1, content=made, stop="tool_use"))
    return transcript


def decision_about(question, decision="allow", **fields):
    given = {"approval": question.approval, "args_digest": question.args_digest, "decision": decision} | fields
    return api.Approve(**given)


@pytest.fixture
def place():
    return Place()


@pytest.fixture
def slow():
    return SlowPlace()


async def test_a_question_is_on_disk_before_anybody_sees_it(slow):
    async with asyncio.TaskGroup() as tasks:
        task = slow.ask(tasks)
        await asyncio.sleep(0)
        assert (slow.approvals.pending(), slow.log, slow.journals.held[0][2]) == ([], [], True)
        slow.journals.commit_next()
        (question,) = slow.approvals.pending()
        assert (slow.log, slow.changes) == (["ApprovalRequested"], [1])
        assert question == events.ApprovalRequested(
            question.approval, "c_1", "bash", ARGS, digest("bash", ARGS), preview="git push",
            rule=TOML, session="s_1",
            choices=[events.ApprovalChoice("same", "only this call", ["session", "always"], TOML)],
        )  # fmt: skip
        task.cancel()


async def test_a_decision_is_on_disk_then_answered_then_shown_then_felt(slow):
    async with asyncio.TaskGroup() as tasks:
        task, question = await slow.asked_and_committed(tasks)
        deciding = tasks.create_task(slow.decide(question))
        await asyncio.sleep(0)
        assert slow.journals.held[0][2], "it has to be durable"
        assert (slow.log, task.done(), len(slow.approvals.pending())) == (["ApprovalRequested"], False, 1)
        slow.journals.commit_next()
        assert slow.log == ["ApprovalRequested", "response", "ApprovalResolved"]
        await deciding
        assert await task == ApprovalAnswer(allowed=True, args=None, reason="", by="ann", scope="once")
    assert (slow.approvals.pending(), slow.changes) == ([], [1, 0])


async def test_the_loser_learns_who_was_quicker_when_that_is_certain(slow):
    async with asyncio.TaskGroup() as tasks:
        task, question = await slow.asked_and_committed(tasks)
        winner = tasks.create_task(slow.decide(question, "deny", reason="no"))
        await asyncio.sleep(0)
        loser = tasks.create_task(slow.refused(question))
        await asyncio.sleep(0)
        assert not loser.done()
        slow.journals.commit_next()
        await winner
        assert await loser == (Code.ALREADY_RESOLVED, "ann has denied it already")
        assert (await task).reason == "denied by the user: no"


async def test_a_decision_that_cannot_be_stored_does_not_count(slow):
    ended = []

    async def note_end(work):
        with pytest.raises(StorageError):
            await work
        ended.append(work)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(note_end(slow.approvals.ask("c_1", "bash", ARGS, run="r_1", preview=None, ttl_s=None)))
        await asyncio.sleep(0)
        slow.journals.commit_next()
        (question,) = slow.approvals.pending()
        tasks.create_task(note_end(slow.decide(question)))
        tasks.create_task(note_end(slow.decide(question, by="ben")))
        await asyncio.sleep(0)
        slow.journals.fail_next()
    assert len(ended) == 3
    assert slow.log == ["ApprovalRequested"]


async def test_a_decision_about_other_arguments_is_refused_and_the_question_stays(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        assert (await place.refused(question, args_digest="0" * 64))[0] == Code.STALE_ARGS
        assert (await place.refused(question, approval="a_0"))[0] == Code.NOT_FOUND
        assert place.approvals.pending() == [question]
        await place.decide(question)
        assert (await task).allowed


async def test_other_arguments_come_back_with_the_answer_and_are_on_record(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        await place.decide(question, args={"command": "git push --dry-run"})
        assert (await task).args == {"command": "git push --dry-run"}
    (decision,) = await place.stored(records.Decision)
    assert (decision.by, decision.args) == ("ann", {"command": "git push --dry-run"})


@pytest.mark.parametrize(
    ("decision", "fields", "words"),
    [
        ("perhaps", {}, 'the decision must be "allow" or "deny"'),
        ("allow", {"scope": "today"}, 'unknown scope "today"'),
        ("deny", {"scope": "session"}, "a denial has the scope once"),
        ("deny", {"args": {}}, "leave `args` out"),
        ("allow", {"scope": "always", "args": {}}, "changed arguments can only be allowed"),
        ("allow", {"scope": "session", "choice": "prefix"}, "there are same (session or always)"),
    ],
)
async def test_a_decision_with_a_wider_scope_than_was_shown_is_refused(place, decision, fields, words):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        code, sentence = await place.refused(question, decision, **fields)
        assert (code, words in sentence, len(place.approvals.pending())) == (Code.BAD_REQUEST, True, 1)
        task.cancel()


async def test_what_no_rule_can_allow_is_allowed_for_once_only(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks, choices=())
        assert (question.rule, question.choices) == (None, [])
        assert (await place.refused(question, scope="session"))[0] == Code.BAD_REQUEST
        task.cancel()


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_a_wider_scope_is_granted_to_the_session_also_after_a_restart(place, scope):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        await place.decide(question, scope=scope)
        assert (await task).scope == scope
    assert list(place.ledger.row.granted) == [RULE]
    assert list((await place.restarted()).ledger.row.granted) == [RULE]


async def test_a_call_that_is_cancelled_ends_its_question_once(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        task.cancel()
        await asyncio.wait([task])
        assert await place.refused(question) == (Code.ALREADY_RESOLVED, "it is no longer pending: the call was aborted")
    assert place.log == ["ApprovalRequested", "ApprovalResolved"]
    assert [one.decision for one in await place.stored(records.Decision)] == ["cancelled"]


async def test_a_call_that_is_cancelled_before_its_question_is_stored_is_never_seen_as_pending(slow):
    async with asyncio.TaskGroup() as tasks:
        task = slow.ask(tasks)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        slow.journals.commit_next()
        assert slow.approvals.pending() == []
        slow.journals.commit_next()
    assert slow.log == ["ApprovalRequested", "ApprovalResolved"]


async def test_an_abort_ends_everything_that_is_pending(place):
    async with asyncio.TaskGroup() as tasks:
        first, _ = await place.asked(tasks)
        second, _ = await place.asked(tasks, "c_2")
        place.approvals.cancel()
        assert not (await first).allowed
        assert (await second).reason == "not run: the call was aborted"
    assert place.approvals.pending() == []


async def test_a_question_with_a_deadline_ends_as_denied(place):
    async with asyncio.TaskGroup() as tasks:
        task = place.ask(tasks, ttl_s=0.01)
        answer = await task
    assert answer == ApprovalAnswer(
        allowed=False, args=None, reason="not run: there was no decision within 0.01 s", by="", scope="once"
    )
    assert place.log == ["ApprovalRequested", "ApprovalResolved"]


async def test_questions_are_answered_each_for_itself(place):
    async with asyncio.TaskGroup() as tasks:
        first, one = await place.asked(tasks)
        second, other = await place.asked(tasks, "c_2", {"command": "git pull"})
        assert one.approval < other.approval
        await place.decide(other, "deny")
        await place.decide(one)
        assert ((await first).allowed, (await second).allowed) == (True, False)


async def test_two_people_answer_and_one_of_them_wins_each_time(place):
    async def race(question):
        outcomes = []

        async def one(by):
            try:
                await place.decide(question, "allow" if by == "ann" else "deny", by)
                outcomes.append(by)
            except CommandError as error:
                outcomes.append(error.sentence)

        async with asyncio.TaskGroup() as people:
            people.create_task(one("ben"))
            people.create_task(one("ann"))
        return outcomes

    for number in range(100):
        async with asyncio.TaskGroup() as tasks:
            task, question = await place.asked(tasks, f"c_{number}")
            outcomes = await race(question)
            assert sorted(outcomes) == ["ben", "ben has denied it already"]
            assert not (await task).allowed


# --- after a restart --------------------------------------------------------------------------------------------------


async def test_a_pending_request_is_restored_with_its_id_arguments_and_deadline(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks, ttl_s=3600)
        restarted = await place.restarted()
        assert restarted.approvals.pending() == [question]
        again = restarted.ask(tasks, approval=question.approval)
        await asyncio.sleep(0)
        await restarted.decide(question)
        assert (await again).by == "ann"
        assert len(await restarted.stored(records.ApprovalRow)) == 1
        task.cancel()


async def test_a_deadline_without_waiters_is_kept(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks, ttl_s=0.3)
        place.approvals.freeze()
        task.cancel()
        restarted = await place.restarted()
        assert (restarted.approvals.pending(), restarted.approvals.is_due) == ([question], True)
        await restarted.changed.wait()
        assert (restarted.approvals.pending(), restarted.approvals.is_due) == ([], False)
    (decision,) = await restarted.stored(records.Decision)
    assert (decision.decision, decision.by, decision.reason) == ("deny", "", "there was no decision within 0.3 s")


async def test_a_decision_without_waiters_is_kept_until_it_is_asked_for(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        restarted = await place.restarted()
        await restarted.decide(question, "deny", reason="not today")
        assert restarted.approvals.pending() == []
        twice = await restarted.restarted()
        for one in (restarted, twice):
            answer = await one.ask(tasks, approval=question.approval)
            assert answer.reason == "denied by the user: not today"
        assert await twice.refused(question) == (Code.ALREADY_RESOLVED, "ann has denied it already")
        task.cancel()


async def test_a_question_whose_deadline_passed_while_nothing_ran_is_over_before_anybody_is_shown_it(place):
    row = records.ApprovalRow(
        time="2020-01-01T00:00:00.000Z", id="a_1", call_id="c_1", tool="bash", args=ARGS,
        args_digest=digest("bash", ARGS), expires=PAST, rule=RULE,
    )  # fmt: skip
    place.ledger.transcript.apply(row)
    question = asked(row, place.ledger.label)
    await place.ledger.write(place.approvals.restore(place.ledger.transcript), durable=True)
    assert place.approvals.pending() == []
    assert await place.refused(question) == (
        Code.ALREADY_RESOLVED,
        "it is no longer pending: there was no decision within 1 s",
    )
    async with asyncio.TaskGroup() as tasks:
        assert (await place.ask(tasks, approval="a_1")).reason == "not run: there was no decision within 1 s"
    assert len(await place.stored(records.Decision)) == 1


async def test_what_the_end_of_the_process_cuts_stays_pending(place):
    async with asyncio.TaskGroup() as tasks:
        task, question = await place.asked(tasks)
        place.approvals.freeze()
        task.cancel()
    assert (await place.restarted()).approvals.pending() == [question]


async def test_a_session_is_attended_while_a_follower_can_decide(place):
    class Client:
        can_decide = False

    client = Client()
    place.approvals.followers.add(client)
    assert not place.approvals.is_attended
    client.can_decide = True
    assert place.approvals.is_attended
