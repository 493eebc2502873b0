"""Confines commands: a policy of what they may read, change and connect to, and the mechanisms that keep it.

Decisions about calls, and questions to persons, are made elsewhere; here a process is confined or not started at all.
"""

from zotd.jail.errors import JailError
from zotd.jail.mechanisms import Jail, Mechanism, find_jail
from zotd.jail.policy import JailPolicy, policy_for

__all__ = ["Jail", "JailError", "JailPolicy", "Mechanism", "find_jail", "policy_for"]
