"""What is recorded, and what the turn is told, when a run changes its model (`runs.model_ladder` decides which)."""

from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core import records, turn
from zotd.core.retry import ModelError
from zotd.core.transcript import Transcript
from zotd.core.turn_inputs import NotSwitched, Switched
from zotd.ledger.ledger import Shown
from zotd.runs.context import RunContext
from zotd.runs.model_ladder import ModelLadder, NextModel
from zotd.wire import events


def ladder_of(plan: RunContext) -> ModelLadder:
    """Return the models of a run that has fallbacks."""
    assert isinstance(plan.models, ModelLadder), "a run with one model has no choice"
    return plan.models


def switched(
    run: str, plan: RunContext, transcript: Transcript, switch: turn.Switch, *, choice: NextModel | None
) -> tuple[Sequence[Shown], Switched | NotSwitched]:
    """Ask the chosen model from now on; return what people should see of it, and the answer for the turn."""
    models = ladder_of(plan)
    if choice is None:
        return _notes(models.take_notes()), NotSwitched(switch.attempt)
    models.take(choice)
    told = Switched(
        switch.attempt,
        turn.tokens_limit(choice.opened.model.context_window, plan.compact_at),
        choice.policy,
        models.is_fallback,
    )
    error = switch.error
    if error is None:
        if not models.is_fallback:  # it may be back; people hear of it when it has answered
            return (), told
        error = models.reason
    notes = models.take_notes()
    if choice.opened.label == (transcript.fallback.label or plan.settings.label):
        return _notes(notes), told  # as in the run before, or after an attempt at a better one that failed
    return [*_notes(notes), _switch(run, plan, transcript, error)], told


def answered(run: str, plan: RunContext, transcript: Transcript) -> Sequence[Shown]:
    """The current model has answered in full; return the end of a switch, if this was one."""
    ladder_of(plan).answered()
    if plan.models.current.label == (transcript.fallback.label or plan.settings.label):
        return ()
    return [_switch(run, plan, transcript, None)]


def _switch(run: str, plan: RunContext, transcript: Transcript, error: ModelError | None) -> Shown:
    own, now = plan.settings.label, plan.models.current
    before = transcript.fallback.label or own
    reason, brief = ("", "") if error is None else (error.sentence, error.brief)
    record = records.ModelSwitch(time=rfc3339(), run=run, before=before, after=now.label, own=own, reason=reason)
    event = events.ModelSwitched(now.provider, now.name, before, own=now.label == own, reason=reason, brief=brief)
    return Shown(record, [event])


def _notes(sentences: Sequence[str]) -> list[Shown]:
    return [
        Shown(records.Note(time=rfc3339(), level="warn", text=text), [events.Notice("warn", text)])
        for text in sentences
    ]
