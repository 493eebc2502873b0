"""A proxy for commands that have no network: it connects them to the hosts that may be reached, and records each request.

Who decides about a host, and how a command is confined, is not known here: `zotd.jail` takes an outlet of the proxy.
"""

from zotd.proxy.errors import HostError
from zotd.proxy.rules import AllowList, HostDecider, HostDecision, HostQuestion, parse_rule

__all__ = [
    "AllowList",
    "HostDecider",
    "HostDecision",
    "HostError",
    "HostQuestion",
    "parse_rule",
]
