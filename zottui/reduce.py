"""The reducer: (state, item from the daemon) -> (state, effects). Pure: the time is an argument.

A step's text may arrive up to three times: as deltas, as the partial reply in a snapshot after a reconnect, and whole
in `assistant_message`. `LiveReply.seen` counts the characters taken so far, so that each one is printed once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from msgspec import structs

from zotd.client import model_switch
from zotd.client.follow import Disconnected, Item
from zotd.wire import events
from zotd.wire.api import Attached
from zotd.wire.events import AnyEvent
from zottui.blocks import Block, NoteLine, Thought, ToolRan, UserSaid
from zottui.effects import Alert, Effect, InsertText, Print
from zottui.lines import in_terminal, line_of
from zottui.session_values import job_changed, plan_changed
from zottui.snapshots import begun, resumed, shell_call
from zottui.state import LinkState, LiveCall, LiveReply, RunState, ViewState
from zottui.transcript import images_in, prose, ran_by_hand, text_of

Next = tuple[ViewState, tuple[Effect, ...]]
"""The next state, and the effects to carry out."""

TAIL_LINES = 6
"""Last lines of a running tool's output that are kept for the live area."""

TAIL_CHARS = 4096
"""Most characters of them: a progress bar may never end its line."""

THOUGHT_S = 2.0
"""Seconds of thinking from which on a line reports it."""


def reduce(state: ViewState, item: Item, now: float) -> Next:
    """Apply an item of `zotd.client.follow`: a snapshot, a batch of events, or the loss of the connection."""
    match item:
        case Disconnected():
            return replace(state, link=LinkState.LOST), ()
        case Attached(mode="resumed"):
            return resumed(state, item, now), ()
        case Attached():
            state, blocks = begun(state, item, now)
            return state, _joined([Print(blocks)])
        case _:
            return _batch(state, item, now)


def _batch(state: ViewState, batch: Sequence[AnyEvent], now: float) -> Next:
    effects: list[Effect] = []
    for event in _merged(batch):
        state, more = _event(state, event, now)
        effects += more
    return state, _joined(effects)


def _merged(batch: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
    """Join consecutive deltas: a burst then costs what its text costs, not one reduction for each delta."""
    for kind, run in groupby(batch, key=type):
        if kind is events.TextDelta:
            yield events.TextDelta(_deltas(run))
        elif kind is events.ThinkingDelta:
            yield events.ThinkingDelta(_deltas(run))
        else:
            yield from run


def _deltas(run: Iterable[AnyEvent]) -> str:
    return "".join(event.delta for event in run if isinstance(event, events.TextDelta | events.ThinkingDelta))


def _joined(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Join consecutive prints: each one costs a frame."""
    joined: list[Effect] = []
    for effect in effects:
        if isinstance(effect, Print) and joined and isinstance(joined[-1], Print):
            joined[-1] = Print(joined[-1].blocks + effect.blocks)
        elif not isinstance(effect, Print) or effect.blocks:
            joined.append(effect)
    return tuple(joined)


# --- events -----------------------------------------------------------------------------------------------------------


def _event(state: ViewState, event: AnyEvent, now: float) -> Next:
    # Live events such as deltas have no `seq`; replayed ones may be older than the last.
    if event.seq is not None and event.seq > state.last_seq:
        state = replace(state, last_seq=event.seq)
    line = line_of(event)
    return _printed(state, line) if line is not None else _step(state, event, now)


def _printed(state: ViewState, *blocks: Block) -> Next:
    return state, (Print(blocks),) if blocks else ()


def _user_message(state: ViewState, event: events.UserMessage, now: float) -> Next:
    if event.shell is not None:
        block = ran_by_hand(event.shell, event.content, state.tools + 1)
        # The call leaves the live area in the same step in which its card is printed, so it is never seen twice.
        return _printed(replace(_without(state, event.shell.id), tools=state.tools + 1), block)
    is_own = event.input is not None and event.input in state.own
    said = UserSaid(
        text_of(event.content), images_in(event.content), sender="" if is_own or event.sender is None else event.sender
    )
    return _printed(replace(state, run=state.run or RunState(now)), said)


def _turn_start(state: ViewState, event: events.TurnStart, now: float) -> ViewState:
    run = replace(state.run or RunState(now), step=event.step, started={}, retry="")
    # A held session with an empty queue gets no `queue_changed` when its run continues, so clear `held` here.
    return replace(state, run=run, reply=LiveReply(thinking_since=now), held=state.held and bool(state.queue))


def _thinking(state: ViewState, event: events.ThinkingDelta, now: float) -> ViewState:
    reply = state.reply
    # Models may think again between two texts. Only thinking before the first text is timed.
    since = now if reply.thinking_since is None and not reply.seen else reply.thinking_since
    return replace(state, reply=replace(reply, thinking_since=since, thought=reply.thought + event.delta))


def _text(state: ViewState, event: events.TextDelta, now: float) -> Next:
    state, thought = _answering(state, now)
    finished, stream = state.reply.stream.feed(event.delta)
    reply = replace(state.reply, stream=stream, seen=state.reply.seen + len(event.delta))
    return _printed(replace(state, reply=reply), *thought, *finished)


def _answering(state: ViewState, now: float) -> tuple[ViewState, tuple[Block, ...]]:
    """End the thinking phase; return the line about it, if it took long enough or its text is shown."""
    reply = state.reply
    if reply.thinking_since is None:
        return state, ()
    seconds = now - reply.thinking_since
    words = reply.thought if state.shows_thoughts else ""
    has_thought = bool(reply.thought) and seconds >= THOUGHT_S
    thought = (Thought(seconds, words),) if words or has_thought else ()
    run = state.run and replace(state.run, retry="")
    return replace(state, run=run, reply=replace(reply, thinking_since=None, thought="")), thought


def _call_begins(state: ViewState, event: events.ToolUseStart, now: float) -> Next:
    state, thought = _answering(state, now)
    calls = (*state.reply.calls, LiveCall(event.id, event.name))
    return _printed(replace(state, reply=replace(state.reply, calls=calls)), *thought)


def _called(state: ViewState, event: events.ToolCallEvent) -> ViewState:
    # After a reconnect `tool_use_start` may have been missed.
    if not any(call.id == event.id for call in state.reply.calls):
        calls = (*state.reply.calls, LiveCall(event.id, event.name))
        state = replace(state, reply=replace(state.reply, calls=calls))
    return _call(state, event.id, lambda call: replace(call, args=event.args, is_written=True))


def _call(state: ViewState, call_id: str, change: Callable[[LiveCall], LiveCall]) -> ViewState:
    calls = tuple(change(call) if call.id == call_id else call for call in state.reply.calls)
    return replace(state, reply=replace(state.reply, calls=calls))


def _assistant_message(state: ViewState, event: events.AssistantMessage, now: float) -> Next:
    """Print the part of the reply that has not been printed from deltas."""
    state, thought = _answering(state, now)
    whole = text_of(event.content)
    reply = state.reply
    if len(whole) < reply.seen:  # shorter than its deltas: a guard has replaced the reply
        rest = (NoteLine("the reply was replaced by:", "warn"), *prose(whole)) if whole else ()
    else:
        finished, stream = reply.stream.feed(whole[reply.seen :])
        rest = (*finished, *stream.end())
    # Set `seen` rather than reset it: after a reconnect events of this step may be replayed.
    reply = replace(reply, stream=type(reply.stream)(), seen=len(whole))
    return _printed(replace(state, reply=reply), *thought, *rest)


def _turn_end(state: ViewState, event: events.TurnEnd) -> Next:
    # An aborted or failed reply may end without `assistant_message`, so print its rest here.
    rest = state.reply.stream.end() if event.stop in {"aborted", "error"} else ()
    state = replace(state, reply=replace(state.reply, stream=type(state.reply.stream)(), thinking_since=None))
    return _printed(state, *rest, *((NoteLine("interrupted"),) if event.stop == "aborted" else ()))


def _begins_to_run(state: ViewState, call_id: str, now: float) -> ViewState:
    run = state.run or RunState(now)
    return replace(state, run=replace(run, started={**run.started, call_id: now}))


def _reply_cut(state: ViewState, partial: str) -> Next:
    """Print the rest of a partial reply that the daemon had stored before it was killed.

    No warning here: the event about the run follows. This client may have seen more than the daemon had stored.
    """
    reply = state.reply
    finished, stream = reply.stream.feed(partial[reply.seen :])
    state = replace(state, reply=LiveReply(seen=max(reply.seen, len(partial)), calls=reply.calls))
    return _printed(state, *finished, *stream.end())


def _progress(state: ViewState, event: events.ToolProgress) -> ViewState:
    def grown(call: LiveCall) -> LiveCall:
        lines = (call.tail + event.text)[-TAIL_CHARS:].splitlines(keepends=True)  # the last line may be incomplete
        return replace(call, tail="".join(lines[-TAIL_LINES:]))

    return _call(state, event.id, grown)


def _result(state: ViewState, event: events.ToolResultEvent, now: float) -> Next:
    call = next((call for call in state.reply.calls if call.id == event.id), LiveCall(event.id, event.name or "tool"))
    # No start time if this client attached after the call began; the card then shows no duration.
    since = state.run.started.get(event.id) if state.run is not None else None
    block = ToolRan(
        call.name,
        call.args,
        text_of(event.content),
        is_error=event.is_error,
        extension=event.extension or "",
        seconds=None if since is None else now - since,
        images=images_in(event.content),
        number=state.tools + 1,
    )
    return _printed(replace(_without(state, event.id), tools=state.tools + 1), block)


def _without(state: ViewState, call_id: str) -> ViewState:
    calls = tuple(call for call in state.reply.calls if call.id != call_id)
    return replace(state, reply=replace(state.reply, calls=calls))


def _shell_start(state: ViewState, event: events.ShellStart, now: float) -> ViewState:
    call = shell_call(event.id, event.command, for_model=event.context)
    state = _begins_to_run(state, event.id, now)
    return replace(state, reply=replace(state.reply, calls=(*state.reply.calls, call)))


def _context(event: events.Usage) -> int:
    """Return the tokens of one model call: the part of the context window that the conversation fills."""
    return event.input + event.output + event.cache_read + event.cache_write


def _replayed(state: ViewState, now: float) -> Next:
    """The replay of missed events is complete: apply the snapshot's partial reply, which is newer than all of them."""
    partial, state = state.partial, replace(state, partial=None)
    if partial is None or state.run is None:
        return state, ()
    # The replay may already have contained some of the partial's calls and text.
    known = {call.id for call in state.reply.calls}
    begun = tuple(LiveCall(use.id, use.name, written=len(use.args)) for use in partial.tool_uses if use.id not in known)
    state = replace(state, reply=replace(state.reply, calls=(*state.reply.calls, *begun)))
    unseen = partial.text[state.reply.seen :]
    return _text(state, events.TextDelta(unseen), now) if unseen else (state, ())


def _session_changed(state: ViewState, event: events.SessionChanged) -> ViewState:
    if state.session is None:
        return state
    told = {name: getattr(event, name) for name in ("state", "name", "provider", "model", "reasoning", "mode")}
    known = {name: value for name, value in told.items() if value is not None}
    return replace(state, session=structs.replace(state.session, **known))


def _model_switched(state: ViewState, event: events.ModelSwitched) -> Next:
    session = state.session
    if session is not None:
        fallback = "" if event.own else f"{event.provider}/{event.model}"
        state = replace(state, session=structs.replace(session, fallback=fallback))
    # As after a failed request: the model begins the step anew, with an empty reply.
    words = in_terminal(model_switch.sentence(f"{event.provider}/{event.model}", own=event.own, reason=event.reason))
    return _printed(state, *state.reply.stream.end(), NoteLine(words, "warn" if event.reason else "info"))


def _approval_resolved(state: ViewState, event: events.ApprovalResolved) -> Next:
    question = next((one for one in state.approvals if one.approval == event.approval), None)
    state = replace(state, approvals=tuple(one for one in state.approvals if one.approval != event.approval))
    what = f": {question.tool}" if question else ""
    reason = f" ({event.reason})" if event.reason else ""
    if event.decision == "cancelled" and state.run is not None and not event.by:
        return state, ()  # the run was interrupted, and "interrupted" is printed already
    if not event.by:
        return _printed(state, NoteLine(f"no decision{what}{reason}", "warn"))
    if event.approval in state.own:  # decided here: the call's card shows the outcome
        return state, ()
    if event.decision == "allow":
        return _printed(state, NoteLine(f"approved by {event.by}{what}"))
    return _printed(state, NoteLine(f"denied by {event.by}{what}{reason}", "warn"))


def _retry(state: ViewState, event: events.Retry, now: float) -> Next:
    # The calls of a failed reply never run, and the next attempt starts from an empty reply.
    run = replace(state.run or RunState(now), retry=event.reason, retry_at=now + event.delay_s)
    return _printed(replace(state, run=run, reply=LiveReply(thinking_since=now)), *state.reply.stream.end())


def _segment(state: ViewState, event: events.ExtStatus) -> ViewState:
    """Set or remove a status segment. An update keeps its position: a segment that changes often must not move."""
    key = (event.extension, event.key)
    if not event.text:
        return replace(state, segments=tuple(segment for segment in state.segments if segment[0] != key))
    # A new segment goes to the end, an existing one is replaced in place.
    if all(segment[0] != key for segment in state.segments):
        return replace(state, segments=(*state.segments, (key, event.text)))
    changed = tuple((each, event.text if each == key else text) for each, text in state.segments)
    return replace(state, segments=changed)


def _other_panels(state: ViewState, event: events.ExtPanel | events.ExtPanelClosed) -> tuple[events.ExtPanel, ...]:
    about = (event.extension, event.panel_id)
    return tuple(panel for panel in state.panels if (panel.extension, panel.panel_id) != about)


def _step(state: ViewState, event: AnyEvent, now: float) -> Next:  # noqa: C901, PLR0911, PLR0912  (a case per event)
    """Apply an event of a run."""
    match event:
        case events.UserMessage():
            return _user_message(state, event, now)
        case events.ShellStart():
            return _shell_start(state, event, now), ()
        case events.TurnStart():
            return _turn_start(state, event, now), ()
        case events.ThinkingDelta():
            return _thinking(state, event, now), ()
        case events.TextDelta():
            return _text(state, event, now)
        case events.ToolUseStart():
            return _call_begins(state, event, now)
        case events.ToolUseArgs():
            return _call(state, event.id, lambda call: replace(call, written=call.written + len(event.delta))), ()
        case events.ToolCallEvent():
            return _called(state, event), ()
        case events.AssistantMessage():
            return _assistant_message(state, event, now)
        case events.TurnEnd():
            return _turn_end(state, event)
        case events.Interrupted(partial=str() as partial):
            return _reply_cut(state, partial)
        case events.ToolStart():
            return _begins_to_run(state, event.id, now), ()
        case events.ToolProgress():
            return _progress(state, event), ()
        case events.ToolResultEvent():
            return _result(state, event, now)
        case events.Usage(cumulative=usage):
            return replace(state, usage=usage, context=_context(event)), ()
        case events.Retry():
            return _retry(state, event, now)
        case events.Done():
            return _printed(replace(state, run=None, reply=LiveReply()), *state.reply.stream.end())
        case _:
            return _around(state, event, now)


def _around(state: ViewState, event: AnyEvent, now: float) -> Next:  # noqa: C901, PLR0911, PLR0912  (a case per event)
    """Apply an event that belongs to no run."""
    match event:
        case events.ReplayComplete():
            return _replayed(state, now)
        case events.ModelSwitched():
            return _model_switched(state, event)
        case events.SessionChanged():
            return _session_changed(state, event), ()
        case events.PlanChanged():
            state, blocks = plan_changed(state, event)
            return _printed(state, *blocks)
        case events.JobChanged() | events.JobPortsChanged():
            state, blocks = job_changed(state, event, now)
            return _printed(state, *blocks)
        case events.ApprovalRequested():
            others = (one for one in state.approvals if one.approval != event.approval)
            return replace(state, approvals=(*others, event)), ()
        case events.ApprovalResolved():
            return _approval_resolved(state, event)
        case events.QueueChanged(items=items, held=held):
            return replace(state, queue=tuple(items), held=held), ()
        case events.Presence(clients=clients):
            return replace(state, clients=tuple(clients)), ()
        case events.SessionUpdated(session=key, name=name) if state.session is not None and key == state.session.id:
            return replace(state, session=structs.replace(state.session, name=name)), ()
        case events.ExtStatus():
            return _segment(state, event), ()
        case events.ExtPanel():
            return replace(state, panels=(*_other_panels(state, event), event)), ()
        case events.ExtPanelClosed():
            return replace(state, panels=_other_panels(state, event)), ()
        case events.ExtInsert(text=words):
            return state, (InsertText(words),)
        case events.Attention(reason=reason, text=words):
            return replace(state, calls_you=True), (Alert(reason, words),)
        case _:
            return state, ()
