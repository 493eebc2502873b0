"""Confines commands: a policy of what they may read, change and connect to, and the mechanisms that keep it.

Decisions about calls, and questions to persons, are made elsewhere; here a process is confined or not started at all.
"""

from zotd.jail.errors import JailError
from zotd.jail.mechanisms import Jail, Mechanism, NetworkOutlet, find_jail
from zotd.jail.policy import JailPolicy, Network, policy_for

__all__ = ["Jail", "JailError", "JailPolicy", "Mechanism", "Network", "NetworkOutlet", "find_jail", "policy_for"]
