"""The plan of one session: changed by people and by the model, recorded, and shown to everybody who follows.

The model reads about an edit of a person with its next request. Until then it may not change the plan: it would undo the edit
without having seen it.

    /plan ──> read-only ──> the model looks ──> calls `plan` ──> a person is asked ─┬─ approves ──> the mode from before
                  ^                                                                 └─ rejects ──┐
                  └──────────────────────────────────────────────────────────────────────────────┘

The mode from before is a setting of the session (`planning`), so that it is there after a restart. Only an approval, `/plan off`
and a person who sets another mode end the planning.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import plan as plans
from zotd.core import records
from zotd.core.plan import BEGUN, ENDED, PlanConflictError, PlanError, edit_note
from zotd.core.ports import SessionRow, Tool, ToolOutcome
from zotd.core.records import Settings
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.decisions import ApprovalAnswer
from zotd.sessions.agent_settings import check_own
from zotd.tasks import ignore_failure
from zotd.wire import api, events
from zotd.wire.content import Text
from zotd.wire.errors import Code, CommandError
from zotd.wire.plan import APPROVED, DONE, PROPOSED, Plan, PlanStep, step_lines

TOOL = "plan"

READ_ONLY = "read-only"

UNSEEN = (
    "the plan was not changed: the user has changed it since you last saw it. It is now:\n{plan}\n"
    "Take that over, and call plan again in your next step"
)

REJECTED = "the user has rejected the plan{why}; the session is still read-only: propose another one"

APPROVED_TEXT = (
    "the user has approved the plan{changed}, and the session's mode is {mode}; begin, and keep the states up to date"
)
"""What the model is told."""


class PlanKeeper:
    """Takes changes of a session's plan; is its `PlanGate`. Raises StorageError when the journal cannot write."""

    def __init__(
        self, ledger: Ledger, approvals: SessionApprovals, *, check: Callable[[], None], changed: Callable[[], None]
    ) -> None:
        """`check` raises CommandError when people can change nothing now; `changed` is called when settings have changed."""
        self._ledger = ledger
        self._approvals = approvals
        self._check = check
        self._changed = changed
        self._approved: dict[str, ApprovalAnswer] = {}
        """What people have allowed, by the call that runs because of it."""

    @property
    def is_planning(self) -> bool:
        """Whether the session only reads until a person approves a plan."""
        return bool(self._ledger.row.settings.planning)

    @property
    def state(self) -> api.PlanState:
        """The plan as clients see it."""
        return api.PlanState(self._ledger.row.plan, self.is_planning)

    # --- people -----------------------------------------------------------------------------------------------

    async def edit(
        self, params: api.PlanEdit, *, by: str, approves: bool, accepted: Callable[[api.PlanState], None]
    ) -> None:
        """Replace the steps for a person; the session is loaded. `accepted` is called when that is safe on disk.

        Raises CommandError: `conflict` if the plan has changed since that revision, `bad_request` for impossible steps.
        """
        self._check()
        check_own(self._ledger.row.settings, "plan that people edit")
        before = self._ledger.row.plan
        asked = (one.tool_id for one in self._approvals.pending())
        is_asked = before is not None and before.status == PROPOSED and before.call in asked
        try:
            plan = plans.edited(
                before, params.steps, revision=params.revision, by=by, approves=approves, is_asked=is_asked
            )
        except PlanError as error:
            code = Code.CONFLICT if isinstance(error, PlanConflictError) else Code.BAD_REQUEST
            raise CommandError(code, str(error)) from error
        if plan is before:
            accepted(self.state)
            return
        shown = self._change(plan, edit_note=edit_note(plan))
        await self._ledger.write([shown], durable=True, accepted=lambda: accepted(self.state), plan=plan)

    async def begin(self, accepted: Callable[[], None]) -> None:
        """Have the session only read until a person approves a plan; the session is loaded. `accepted` as in `edit`."""
        self._check()
        settings = self._ledger.row.settings
        check_own(settings, "planning")
        if settings.planning:
            accepted()
            return
        planning = msgspec.structs.replace(settings, mode=READ_ONLY, planning=settings.mode)
        await self._set(planning, self._change(self._ledger.row.plan, mode_note=BEGUN, planning=True), accepted)

    async def end(self, accepted: Callable[[], None]) -> None:
        """Return to the mode from before, without a plan that was approved; the session is loaded."""
        self._check()
        before = self._ledger.row.settings.planning
        if not before:
            raise CommandError(Code.CONFLICT, "the session is not planning; `/plan` begins")
        change = self._change(self._ledger.row.plan, mode_note=self._end_note(before), planning=False)
        await self._set(self._left(), change, accepted)

    def mode_changed(self, settings: Settings) -> tuple[Settings, list[Shown]]:
        """Return settings that a person wants, and what else is to be recorded because they end the planning."""
        if not settings.planning or settings.mode == READ_ONLY:
            return settings, []
        note = self._end_note(settings.mode)
        ended = self._change(self._ledger.row.plan, mode_note=note, planning=False)
        return msgspec.structs.replace(settings, planning=""), [ended]

    # --- the model --------------------------------------------------------------------------------------------

    async def update(self, call: str, steps: Sequence[PlanStep]) -> ToolOutcome:
        """Replace the steps for the model, which has called the tool `plan`."""
        before, answer = self._ledger.row.plan, self._approved.pop(call, None)
        try:
            if answer is not None:
                return await self._approve(call, steps, answer)
            self._check_seen(call)
            plan = plans.updated(before, steps, call)
        except PlanError as error:
            self.given_up(call)
            return ToolOutcome.error(str(error))
        if plan is not before:
            if self.is_planning:  # it began after the call was allowed
                return ToolOutcome.error("the plan was not changed: the user wants to approve it; call plan again")
            await self._write(plan)
        return ToolOutcome([Text(_summary(plan))])

    async def told(self, steps: Sequence[PlanStep]) -> None:
        """Replace the steps for the other agent that runs the turns. Raises PlanError."""
        before = self._ledger.row.plan
        if before is None or list(steps) != before.steps:
            await self._write(plans.updated(before, steps, ids.new("c")))

    async def _approve(self, call: str, steps: Sequence[PlanStep], answer: ApprovalAnswer) -> ToolOutcome:
        """Take over what a person has approved, and return to the mode from before."""
        plan = plans.approved(self._ledger.row.plan, steps, call, answer.by)
        mode = self._ledger.row.settings.planning or self._ledger.row.settings.mode
        if self.is_planning:
            await self._set(self._left(), self._change(plan, planning=False))
        else:
            await self._write(plan)
        lines = "\n".join(step_lines(plan.steps))
        changed = f" with changes. It is now:\n{lines}\n" if answer.args is not None else ""
        return ToolOutcome([Text(APPROVED_TEXT.format(changed=changed, mode=mode))])

    # --- the question, as a `PlanGate` --------------------------------------------------------------------------

    def concerns(self, key: str, tool: Tool, args: Mapping[str, object]) -> bool:
        """Whether the call proposes a plan while the session plans; one that would fail is not asked about."""
        if not self.is_planning or tool.extension is not None or tool.spec.name != TOOL:
            return False
        try:
            self._check_seen(key)
            plans.checked(_steps(args))
        except PlanError:
            return False
        return True

    async def proposed(self, key: str, args: Mapping[str, object]) -> None:
        """Show the plan as proposed, unless that was done before a restart."""
        before = self._ledger.row.plan
        plan = plans.proposed(before, _steps(args), key)
        if plan is not before:
            await self._write(plan)

    async def answered(self, key: str, answer: ApprovalAnswer) -> str:
        """Keep an approval until the call runs, or record the rejection."""
        if answer.allowed:
            self._approved[key] = answer
            return answer.reason
        plan = self._ledger.row.plan
        if plan is None or plan.call != key or plan.status != PROPOSED:
            return answer.reason
        if not answer.by:
            await self._write(plans.withdrawn(plan))
            return answer.reason
        comment = answer.reason.removeprefix("denied by the user").removeprefix(": ")
        await self._write(plans.rejected(plan, comment, answer.by))
        return REJECTED.format(why=f": {comment}" if comment else "")

    def given_up(self, key: str) -> None:
        """Nobody is asked about the plan of this call any more."""
        plan = self._ledger.row.plan
        if plan is not None and plan.call == key and plan.status == PROPOSED:
            # If it fails the session is blocked, which others tell.
            ignore_failure(self._write(plans.withdrawn(plan)))

    # --- recording --------------------------------------------------------------------------------------------

    def _check_seen(self, call: str) -> None:
        """Raise PlanError if a person has changed the plan since the model was told of it."""
        plan, news = self._ledger.row.plan, self._ledger.transcript.plan_news
        if news is not None and news.edit_note and plan is not None and plan.call != call:
            raise PlanError(UNSEEN.format(plan="\n".join(step_lines(plan.steps))))

    def _end_note(self, mode: str) -> str:
        news = self._ledger.transcript.plan_news
        is_untold = news is not None and news.mode_note == BEGUN
        return "" if is_untold else ENDED.format(mode=mode)

    def _left(self) -> Settings:
        settings = self._ledger.row.settings
        return msgspec.structs.replace(settings, mode=settings.planning or settings.mode, planning="")

    def _change(
        self, plan: Plan | None, *, mode_note: str | None = None, edit_note: str = "", planning: bool | None = None
    ) -> Shown:
        """The record of the plan; what the model has not been told yet is told with the new one."""
        news = self._ledger.transcript.plan_news
        known = (news.mode_note, news.edit_note) if news is not None else ("", "")
        record = records.PlanChange(
            time=rfc3339(),
            plan=plan,
            mode_note=known[0] if mode_note is None else mode_note,
            edit_note=edit_note or known[1],
        )
        return Shown(record, [events.PlanChanged(plan, self.is_planning if planning is None else planning)])

    def _write(self, plan: Plan) -> asyncio.Future[None]:
        return self._ledger.write([self._change(plan)], durable=False, plan=plan)

    async def _set(self, settings: Settings, change: Shown, accepted: Callable[[], None] | None = None) -> None:
        """Record another mode together with what it means for the plan."""
        row = self._ledger.row
        config = records.ConfigRecord(time=rfc3339(), settings=settings, name=row.name)
        assert isinstance(change.record, records.PlanChange)
        written = self._ledger.write(
            [Shown(config, [events.SessionChanged(row.state, mode=settings.mode)]), change],
            durable=True,
            accepted=accepted,
            settings=settings,
            plan=change.record.plan,
        )
        self._changed()
        await written


def renewed(row: SessionRow, plan: Plan | None) -> list[Shown]:
    """Return what is to be recorded when the conversation goes on with this plan from elsewhere: cleared, rewound or forked.

    The model does not know then that the session plans, so it is told again.
    """
    is_planning = bool(row.settings.planning)
    if plan == row.plan and not is_planning:
        return []
    record = records.PlanChange(time=rfc3339(), plan=plan, mode_note=BEGUN if is_planning else "")
    return [Shown(record, [events.PlanChanged(plan, is_planning)])]


def _steps(args: Mapping[str, object]) -> list[PlanStep]:
    """Return the steps in the arguments of a call; raises PlanError if there are none."""
    try:
        return msgspec.convert(args.get("steps"), list[PlanStep])
    except (msgspec.ValidationError, RecursionError) as error:
        raise PlanError(str(error)) from error


def _summary(plan: Plan) -> str:
    if plan.status == APPROVED and plan.by:
        return f"{plan.by} has approved the plan"
    done = sum(step.state == DONE for step in plan.steps)
    return f"the plan has {len(plan.steps)} steps, {done} done; the user sees it"
