"""Commands about timers."""

import asyncio
import os

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import check_may_set, session_of
from zotd.core.timers import Timer, paused
from zotd.sessions.defaults import check_directory, check_mode
from zotd.sessions.timer_orders import described, edited, local_zone, ordered
from zotd.sessions.timers import Timers
from zotd.wire.errors import Code, CommandError
from zotd.wire.timers import TimerAdd, TimerEdit, TimerFired, TimerInfo, TimerList, TimerName, TimerQuery


async def add(timers: Timers | None, call: Invocation, params: TimerAdd) -> TimerInfo:
    """Begin to send a prompt when it is due."""
    keeper = _keeper(timers)
    zone = await asyncio.to_thread(local_zone, os.environ)
    timer = ordered(params, now=keeper.now(), by=call.door.sender, zone=zone, user=call.user)
    if timer.session:
        session = await session_of(call, timer.session)
        if session.ephemeral:
            raise CommandError(Code.CONFLICT, f"{session.id} is not stored, so it can have no timers")
    elif timer.new is not None:
        await asyncio.to_thread(check_directory, timer.new.cwd)
        if timer.new.mode is not None:
            check_mode(timer.new.mode)
            check_may_set(call, timer.new.mode, call.manager.config.value.approval.mode)
    return await _described(keeper, await keeper.add(timer))


async def listing(timers: Timers | None, call: Invocation, params: TimerQuery) -> TimerList:
    """List the timers of a session, or all."""
    keeper = _keeper(timers)
    await keeper.forget_deleted()
    bounds = call.door.confinement
    seen = [one for one in keeper.listed(params.session) if bounds is None or bounds.sees(one.session)]
    return TimerList([await _described(keeper, one) for one in seen])


async def edit(timers: Timers | None, call: Invocation, params: TimerEdit) -> TimerInfo:
    """Change what a timer sends, when, and within which limits."""
    keeper = _keeper(timers)
    zone = await asyncio.to_thread(local_zone, os.environ)
    timer = keeper.get(params.timer, params.session)
    if (
        timer.new is not None and timer.new.mode is not None
    ):  # else another prompt would get a mode that its sender may not choose
        check_may_set(call, timer.new.mode, call.manager.config.value.approval.mode)
    changed = await keeper.change(timer.id, lambda current: edited(current, params, now=keeper.now(), zone=zone))
    return await _described(keeper, changed)


async def pause(timers: Timers | None, call: Invocation, params: TimerName) -> TimerInfo:
    """Let a timer not fire until it is resumed."""
    del call
    keeper = _keeper(timers)
    return await _described(keeper, await keeper.change(keeper.get(params.timer, params.session).id, paused))


async def resume(timers: Timers | None, call: Invocation, params: TimerName) -> TimerInfo:
    """Let a paused timer fire again."""
    del call
    keeper = _keeper(timers)
    return await _described(keeper, await keeper.resume(keeper.get(params.timer, params.session)))


async def remove(timers: Timers | None, call: Invocation, params: TimerName) -> None:
    """Forget a timer."""
    del call
    keeper = _keeper(timers)
    await keeper.remove(keeper.get(params.timer, params.session))


async def run(timers: Timers | None, call: Invocation, params: TimerName) -> TimerFired:
    """Fire a timer now, beside its due times."""
    del call
    keeper = _keeper(timers)
    outcome = await keeper.fire(keeper.get(params.timer, params.session))
    firing = outcome.firing
    if firing is None:
        return TimerFired(fired=False, outcome=outcome.sentence)
    return TimerFired(fired=True, session=firing.session, input=firing.input)


async def _described(keeper: Timers, timer: Timer) -> TimerInfo:
    return described(timer, await keeper.spent(timer))


def _keeper(timers: Timers | None) -> Timers:
    if timers is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon has no timers")
    return timers
