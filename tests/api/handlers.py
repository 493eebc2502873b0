"""The daemon's handlers without a daemon, to look at their names and parameters."""

from types import SimpleNamespace
from typing import cast

from zotd.api.context import DaemonContext
from zotd.api.methods import daemon_handlers

_NOTHING = cast("DaemonContext", SimpleNamespace(**dict.fromkeys(DaemonContext.__slots__)))

HANDLERS = daemon_handlers(_NOTHING)
"""By name of the command. Calling one fails: it has got nothing that it needs."""
