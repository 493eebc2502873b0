"""The daemon's handlers without a daemon, to look at their names and parameters."""

from types import SimpleNamespace
from typing import cast

from zotd.api.audited import AuditedHandler
from zotd.api.context import DaemonContext
from zotd.api.methods import daemon_handlers

_NOTHING = cast("DaemonContext", SimpleNamespace(**dict.fromkeys(DaemonContext.__slots__)))

HANDLERS = {
    name: handler.handler if isinstance(handler, AuditedHandler) else handler
    for name, handler in daemon_handlers(_NOTHING).items()
}
"""By name of the command. Calling one fails: it has got nothing that it needs."""
