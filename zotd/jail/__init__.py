"""Confines commands: a policy of what they may read, change and connect to, and the mechanisms that keep it.

Decisions about calls, and questions to persons, are made elsewhere; here a process is confined or not started at all. This
package loads quickly, because the daemon does at each start; `mechanisms` and `computing` take 10 ms.
"""

from zotd.jail.errors import JailError
from zotd.jail.jail import MECHANISMS, Jail, Mechanism, NetworkOutlet
from zotd.jail.policy import JailPolicy, Network

__all__ = ["MECHANISMS", "Jail", "JailError", "JailPolicy", "Mechanism", "Network", "NetworkOutlet"]
