"""A proxy for commands that have no network: it connects them to the hosts that may be reached, and records each request.

Who decides about a host, and how a command is confined, is not known here: `zotd.jail` takes an outlet of the proxy.
"""

from zotd.proxy.errors import HostError
from zotd.proxy.rules import AllowList, HostDecider, HostDecision, HostQuestion, parse_rule
from zotd.proxy.server import Outlet, ProxyServer, running_proxy
from zotd.proxy.traffic_log import TrafficLog, TrafficRecord

__all__ = [
    "AllowList",
    "HostDecider",
    "HostDecision",
    "HostError",
    "HostQuestion",
    "Outlet",
    "ProxyServer",
    "TrafficLog",
    "TrafficRecord",
    "parse_rule",
    "running_proxy",
]
