"""A model request beside the conversation, whose reply is only read: a summary, or an answer for a tool or a person."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, closing

from zotd.core import records
from zotd.core.ports import Model, ModelRequest
from zotd.core.reply import Assembler
from zotd.core.retry import Failure, ModelError
from zotd.runs.request_billing import RequestBilling
from zotd.wire import events

Bill = Callable[[ModelError | None], records.UsageRow | None]
"""Records what a request has used, however it ended. Nothing is waited for: whoever asked may be gone."""


async def ask_beside(
    billing: RequestBilling,
    model: Model,
    request: ModelRequest,
    *,
    record: Callable[[], Awaitable[None]],
    bill: Bill,
    within_s: float,
    show: Callable[[str], None] | None = None,
) -> tuple[Assembler, records.UsageRow | None]:
    """Put the request on record, send it, bill it, and return the reply with its usage row. Safe to cancel.

    Args:
        billing: pays for the request, which has begun there; it is closed.
        model: is asked.
        request: what it is asked.
        record: writes the attempt before the request is sent.
        bill: is called once, also after a failure or a cancellation.
        within_s: longest wait for the reply.
        show: gets the text of the reply piece by piece.

    Raises:
        ModelError: the request failed, took too long, or a budget is used up.
        StorageError: the attempt could not be written.
    """
    failure: ModelError | None = None
    row: records.UsageRow | None = None
    with closing(billing):
        try:
            await record()
            async with asyncio.timeout(within_s):
                reply = await reply_to(billing, model, request, show)
        except TimeoutError:
            failure = ModelError(Failure.CUT, f"the model did not answer within {within_s:g} s")
            raise failure from None
        except ModelError as error:
            failure = error
            raise
        finally:
            row = bill(failure)
    return reply, row


async def reply_to(
    billing: RequestBilling, model: Model, request: ModelRequest, show: Callable[[str], None] | None = None
) -> Assembler:
    """Send the request, and return the reply when it is whole. `billing`, at which it has begun, pays.

    `show` gets the text of the reply piece by piece.

    Raises:
        ModelError: the request failed, or a budget is used up.
    """
    reply = Assembler(None, _no_calls)
    await billing.look()
    billing.admit()
    is_silent = True
    async with aclosing(model.stream(request)) as chunks:
        async for parts in chunks:
            billing.answered(reply)
            shown = reply.feed(parts)
            if shown and is_silent:
                is_silent = False
                billing.first_token()
            if show is not None:
                _show_text(shown, show)
            reply.check()
    return reply


def _show_text(shown: Iterable[events.Event], show: Callable[[str], None]) -> None:
    for event in shown:
        if isinstance(event, events.TextDelta):
            show(event.delta)


def _no_calls() -> str:
    return "ignored"  # no tools are offered; a call that comes all the same is not run
