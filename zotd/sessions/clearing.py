"""Starting a conversation anew: its records, and what goes on without what was said."""

from collections.abc import Callable

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.plan import returned
from zotd.ledger.ledger import Ledger, Shown
from zotd.sessions.plans import renewed
from zotd.wire.content import Tokens


async def clear(ledger: Ledger, accepted: Callable[[], None]) -> None:
    """Record that the model sees nothing of what came before; the transcript is loaded, and nothing runs."""
    plan = returned(None, ledger.row.plan)
    cleared = Shown(records.Clear(time=rfc3339(), known=ledger.transcript.known()))
    items = [cleared, *renewed(ledger.row, plan)]
    state = ledger.transcript.rest  # a run that was cut is gone, too
    await ledger.write(items, durable=True, context=0, usage=Tokens(), plan=plan, accepted=accepted, state=state)
