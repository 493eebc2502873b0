"""The plan of one session: changed by people and by the model, recorded, and shown to everybody who follows.

The model reads about an edit of a person with its next request. Until then it may not change the plan: it would undo the edit
without having seen it.
"""

from collections.abc import Callable, Sequence

from zotd.clock import rfc3339
from zotd.core import plan as plans
from zotd.core import records
from zotd.core.plan import PlanConflictError, PlanError, edit_note
from zotd.core.ports import ToolOutcome
from zotd.ledger.ledger import Ledger, Shown
from zotd.wire import api, events
from zotd.wire.content import Text
from zotd.wire.errors import Code, CommandError
from zotd.wire.plan import DONE, Plan, PlanStep, step_lines

UNSEEN = (
    "the plan was not changed: the user has changed it since you last saw it. It is now:\n{plan}\n"
    "Take that over, and call plan again in your next step"
)


class PlanKeeper:
    """Takes changes of a session's plan. Raises StorageError when the journal cannot write."""

    def __init__(self, ledger: Ledger, check: Callable[[], None]) -> None:
        """`check` raises CommandError when people can change nothing of the session now."""
        self._ledger = ledger
        self._check = check

    @property
    def state(self) -> api.PlanState:
        """The plan as clients see it."""
        return api.PlanState(self._ledger.row.plan)

    async def edit(
        self, steps: Sequence[PlanStep], revision: int, *, by: str, accepted: Callable[[api.PlanState], None]
    ) -> None:
        """Replace the steps for a person; the session is loaded. `accepted` is called when that is safe on disk.

        Raises CommandError: `conflict` if the plan has changed since that revision, `bad_request` for impossible steps.
        """
        self._check()
        before = self._ledger.row.plan
        try:
            plan = plans.edited(before, steps, revision=revision, by=by)
        except PlanError as error:
            code = Code.CONFLICT if isinstance(error, PlanConflictError) else Code.BAD_REQUEST
            raise CommandError(code, str(error)) from error
        if plan is before:
            accepted(self.state)
            return
        await self._write(plan, edit_note=edit_note(plan), durable=True, accepted=lambda: accepted(self.state))

    async def update(self, call: str, steps: Sequence[PlanStep]) -> ToolOutcome:
        """Replace the steps for the model, which has called the tool `plan`."""
        before, news = self._ledger.row.plan, self._ledger.transcript.plan_news
        if news is not None and news.edit_note and before is not None and before.call != call:
            return ToolOutcome.error(UNSEEN.format(plan="\n".join(step_lines(before.steps))))
        try:
            plan = plans.updated(before, steps, call)
        except PlanError as error:
            return ToolOutcome.error(f"the plan was not changed: {error}")
        if plan is not before:
            await self._write(plan)
        return ToolOutcome([Text(_summary(plan))])

    async def _write(
        self, plan: Plan, *, edit_note: str = "", durable: bool = False, accepted: Callable[[], None] | None = None
    ) -> None:
        """Put the plan on record; what the model has not been told yet is told with the new record."""
        news = self._ledger.transcript.plan_news
        record = records.PlanChange(
            time=rfc3339(),
            plan=plan,
            mode_note=news.mode_note if news is not None else "",
            edit_note=edit_note or (news.edit_note if news is not None else ""),
        )
        shown = Shown(record, [events.PlanChanged(plan)])
        await self._ledger.write([shown], durable=durable, accepted=accepted, plan=plan)


def _summary(plan: Plan) -> str:
    done = sum(step.state == DONE for step in plan.steps)
    return f"the plan has {len(plan.steps)} steps, {done} done; the user sees it"
