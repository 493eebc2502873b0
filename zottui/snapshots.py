"""Turns the snapshot of an attach into state and printed blocks."""

from dataclasses import replace

from zotd.wire.api import Attached, RunInfo
from zottui.blocks import Block, NoteLine, Rule
from zottui.session_values import live_jobs
from zottui.state import LinkState, LiveCall, LiveReply, RunState, ViewState
from zottui.transcript import blocks_of, calls_in, last_turns, open_calls


def _current(state: ViewState, snapshot: Attached, now: float) -> ViewState:
    """Return the state with the snapshot's current values: run, queue, approvals, panels, usage."""
    running = snapshot.run
    run = (
        None
        if running is None
        else replace(state.run or RunState(now), step=running.step, started=_started(running, now))
    )
    if run is not None and running is not None and running.waiting is not None:
        run = replace(run, retry=running.waiting.reason, retry_at=now + running.waiting.next_s)
    return replace(
        state,
        link=LinkState.LIVE,
        session=snapshot.session,
        run=run,
        reply=state.reply if run is not None else LiveReply(),
        partial=None if running is None else running.partial,
        queue=tuple(snapshot.queue),
        held=snapshot.held,
        approvals=tuple(snapshot.approvals),
        plan=snapshot.plan,
        planning=snapshot.planning,
        jobs=live_jobs(snapshot.jobs, now),
        panels=tuple(snapshot.panels),
        segments=tuple(((one.extension, one.key), one.text) for one in snapshot.status),
        usage=snapshot.usage,
        context=snapshot.context,
    )


def _started(running: RunInfo, now: float) -> dict[str, float]:
    begun = {call.id: now - call.seconds for call in running.calls}
    return begun if running.shell is None else begun | {running.shell.id: now}


def resumed(state: ViewState, snapshot: Attached, now: float) -> ViewState:
    """Return the state after a reconnect whose missed events are replayed next."""
    # The replay contains runs, replies and queue changes in their order. Keep the old run and reply until then, and
    # take only what no event repeats from the snapshot.
    after = _current(state, snapshot, now)
    run = state.run
    if run is not None and after.run is not None:
        # Prefer the start times that this client has seen itself.
        run = replace(run, started={**after.run.started, **run.started})
    return replace(after, reply=state.reply, run=run or after.run)


def begun(state: ViewState, snapshot: Attached, now: float) -> tuple[ViewState, tuple[Block, ...]]:
    """Return the state after a snapshot, and the blocks to print.

    The snapshot is the first one, or one that replaces a replay because too many events were missed.
    """
    # After a reconnect, messages up to `last_seq` are in the scrollback already.
    news = [message for message in snapshot.messages if (message.seq or 0) > state.last_seq]
    shown = last_turns(news)
    left_out = len(news) - len(shown) + (len(news) == len(snapshot.messages) and snapshot.has_more)
    earlier = max(snapshot.session.message_count - len(shown), 0) if left_out else 0
    rule: tuple[Block, ...] = ()
    if earlier:
        rule = (Rule(f"{earlier:,} earlier messages: ctrl+t or /jump shows them"),)
    elif state.last_seq and news:
        rule = (Rule("meanwhile"),)
    # A call without a result stays in the live area, as running or waiting, until its result prints its card.
    under_way = _under_way(snapshot)
    open_ids = frozenset(call.id for call in under_way)
    after = replace(
        _current(state, snapshot, now),
        reply=LiveReply(calls=under_way),
        tools=state.tools + calls_in(shown, without=open_ids),
        last_seq=max(state.last_seq, snapshot.seq),
    )
    notes = tuple(NoteLine(note.message, note.level, note.extension) for note in snapshot.notes)
    blocks = (*rule, *blocks_of(shown, state.tools + 1, without=open_ids), *notes)
    return after, blocks


def _under_way(snapshot: Attached) -> tuple[LiveCall, ...]:
    calls = [LiveCall(call.id, call.name, call.args, is_written=True) for call in open_calls(snapshot.messages)]
    if snapshot.run is not None and snapshot.run.shell is not None:
        shell = snapshot.run.shell
        calls.append(shell_call(shell.id, shell.command, for_model=shell.context))
    return tuple(calls)


def shell_call(key: str, command: str, *, for_model: bool) -> LiveCall:
    """Return a user's `!command` as a call for the live area."""
    return LiveCall(key, "!" if for_model else "!!", {"command": command}, is_written=True)
