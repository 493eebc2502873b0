"""A model request beside the conversation, whose reply is only read: a summary, or an answer for a tool."""

from contextlib import aclosing

from zotd.core.ports import Model, ModelRequest
from zotd.core.reply import Assembler
from zotd.runs.request_billing import RequestBilling


async def reply_to(billing: RequestBilling, model: Model, request: ModelRequest) -> Assembler:
    """Send the request, and return the reply when it is whole. `billing`, at which it has begun, pays.

    Raises:
        ModelError: the request failed, or a budget is used up.
    """
    reply = Assembler(None, _no_calls)
    billing.admit()
    is_silent = True
    async with aclosing(model.stream(request)) as chunks:
        async for parts in chunks:
            billing.answered(reply)
            if reply.feed(parts) and is_silent:
                is_silent = False
                billing.first_token()
            reply.check()
    return reply


def _no_calls() -> str:
    return "ignored"  # no tools are offered; a call that comes all the same is not run
