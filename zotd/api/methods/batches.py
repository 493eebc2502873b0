"""Commands about batches of prompts."""

import time

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import check_may_set
from zotd.batches.batches import Batches
from zotd.clock import rfc3339
from zotd.core.batches import BatchPrompt
from zotd.ledger.spending import check_budget
from zotd.runs.queue import content_of
from zotd.sessions.defaults import check_mode
from zotd.store.batches import BatchError, NewBatch, PlacedResult
from zotd.wire import batches as wire
from zotd.wire.errors import Code, CommandError

MAX_ID_CHARS = 128
"""Longest id of a batch."""

MAX_NUMBER = 2**53
"""Largest number of a prompt: larger ones are not exact in JavaScript."""

MAX_RETRIES = 100
"""Most retries of a prompt."""

MAX_PRIORITY = 1000
"""Largest priority of a batch, and the smallest with a minus."""

WAIT_S = 30.0
"""Longest wait for a result."""

LOOK_S = 5.0
"""Time between two looks for results while a client waits for them: what another daemon tells may be lost."""

PAGE_BYTES = 1024 * 1024
"""Results of an answer, unless a single one has more."""

MAX_LISTED = 1000
"""Most batches of an answer: a frame has room for four times as many."""

KEPT_S = 30 * 24 * 3600.0
"""Batches that are older and have nothing to run are deleted when another one is submitted."""


async def submit(batches: Batches | None, call: Invocation, params: wire.BatchSubmit) -> wire.BatchSubmitted:
    """Store prompts that are to be run."""
    keeper = _keeper(batches)
    if not params.batch or len(params.batch) > MAX_ID_CHARS or not params.batch.isprintable():
        raise CommandError(Code.BAD_REQUEST, f"the id of a batch has 1 to {MAX_ID_CHARS} printable characters")
    if abs(params.priority) > MAX_PRIORITY:
        raise CommandError(Code.BAD_REQUEST, f"a priority is between -{MAX_PRIORITY} and {MAX_PRIORITY}")
    if not params.prompts:
        raise CommandError(Code.BAD_REQUEST, "no prompts were given")
    prompts = {order.number: _ordered(call, order) for order in params.prompts}
    if len(prompts) < len(params.prompts):
        raise CommandError(Code.BAD_REQUEST, "two of the prompts have the same number")
    submitter = call.user or call.door.sender
    batch = NewBatch(params.batch, submitter, params.priority, rfc3339(), rfc3339(time.time() - KEPT_S))
    try:
        added = await keeper.store.submit(batch, list(prompts.items()))
    except BatchError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error
    keeper.look()
    return wire.BatchSubmitted(added, len(prompts) - added)


async def results(batches: Batches | None, call: Invocation, params: wire.BatchResultQuery) -> wire.BatchResults:
    """Return results behind a place; wait for the first one if that is wanted."""
    del call
    if not 0 <= params.after <= MAX_NUMBER:
        raise CommandError(
            Code.BAD_REQUEST, f"after is between 0 and {MAX_NUMBER}: the place of the last result that you have"
        )
    keeper, ends = _keeper(batches), time.monotonic() + min(params.wait_s, WAIT_S)
    while True:
        sums = await keeper.store.sums(params.batch)  # first: what it counts as ended is among the results
        found = await keeper.store.results(params.batch, params.after, PAGE_BYTES)
        if not sums:
            raise CommandError(Code.NOT_FOUND, f'there is no batch "{params.batch}"; `zotctl fleet batches` lists them')
        running, left_s = sums[0].running, ends - time.monotonic()
        left = sums[0].waiting + running
        if found or not left or left_s <= 0:
            return wire.BatchResults([_shown(one) for one in found], left, running, sums[0].ended)
        await keeper.news(min(left_s, LOOK_S))


async def listing(batches: Batches | None, call: Invocation, params: wire.BatchListQuery) -> wire.BatchList:
    """List batches, newest first."""
    del call
    if not 1 <= params.limit <= MAX_LISTED:
        raise CommandError(Code.BAD_REQUEST, f"batch.list: limit must be from 1 to {MAX_LISTED}")
    found = await _keeper(batches).store.newest(params.limit + 1, active=params.active)
    return wire.BatchList(
        [
            wire.BatchInfo(
                one.id,
                one.submitter,
                one.priority,
                one.made,
                one.is_cancelled,
                waiting=one.waiting,
                running=one.running,
                ended=one.ended,
            )
            for one in found[: params.limit]
        ],
        more=len(found) > params.limit,
    )


async def cancel(batches: Batches | None, call: Invocation, params: wire.BatchName) -> wire.BatchCancelled:
    """End what waits of a batch, and abort what runs."""
    del call
    keeper = _keeper(batches)
    try:
        waiting = await keeper.store.cancel(params.batch)
    except BatchError as error:
        raise CommandError(Code.NOT_FOUND, str(error)) from error
    keeper.look()
    return wire.BatchCancelled(waiting)


def _ordered(call: Invocation, order: wire.BatchPromptOrder) -> BatchPrompt:
    """Return the prompt as it is stored; raises CommandError, which names its number, if no daemon could run it."""
    try:
        _check(call, order)
    except CommandError as error:
        raise CommandError(error.code, f"prompt {order.number}: {error.sentence}") from error
    return BatchPrompt(
        message=order.message,
        cwd=order.cwd,
        labels=tuple(sorted(set(order.labels))),
        provider=order.provider,
        model=order.model,
        mode=order.mode,
        limit_usd=order.limit_usd,
        limit_s=order.limit_s,
        retries=order.retries,
        user=call.user,
    )


def _check(call: Invocation, order: wire.BatchPromptOrder) -> None:
    content_of(order.message, ())
    if not 0 <= order.number <= MAX_NUMBER:
        raise CommandError(Code.BAD_REQUEST, f"its number is not between 0 and {MAX_NUMBER}")
    if not order.cwd.startswith("/"):  # whether it is there, only the daemon knows that runs it
        raise CommandError(Code.BAD_REQUEST, f'cwd must be an absolute path, not "{order.cwd}"')
    if not 0 <= order.retries <= MAX_RETRIES:
        raise CommandError(Code.BAD_REQUEST, f"retries are between 0 and {MAX_RETRIES}")
    if order.limit_s is not None and not order.limit_s > 0:
        raise CommandError(Code.BAD_REQUEST, "limit_s must be above 0")
    check_budget(order.limit_usd, None)
    if order.mode is not None:
        check_mode(order.mode)
        check_may_set(call, order.mode, call.manager.config.value.approval.mode)


def _shown(placed: PlacedResult) -> wire.BatchResult:
    result = placed.result
    return wire.BatchResult(
        place=placed.place,
        number=placed.number,
        state=result.state,
        text=result.text,
        error=result.error,
        session=result.session,
        attempts=result.attempts,
        cost_usd=result.cost_usd,
        took_s=result.took_s,
    )


def _keeper(batches: Batches | None) -> Batches:
    if batches is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon has no batches")
    return batches
