"""A model request beside the conversation, whose reply is only read: a summary, or an answer for a tool or a person."""

from collections.abc import Callable, Iterable
from contextlib import aclosing

from zotd.core.ports import Model, ModelRequest
from zotd.core.reply import Assembler
from zotd.runs.request_billing import RequestBilling
from zotd.wire import events


async def reply_to(
    billing: RequestBilling, model: Model, request: ModelRequest, show: Callable[[str], None] | None = None
) -> Assembler:
    """Send the request, and return the reply when it is whole. `billing`, at which it has begun, pays.

    `show` gets the text of the reply piece by piece.

    Raises:
        ModelError: the request failed, or a budget is used up.
    """
    reply = Assembler(None, _no_calls)
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
