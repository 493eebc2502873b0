"""One way to run children: an own process group, a pidfd that tells when they end, a ladder that ends them.

A ledger on disk, a mark in the environment and a subreaper see to it that nothing outlives its owner for long.
"""

from zotd.process.child import Child, spawn
from zotd.process.ledger import Ledger
from zotd.process.orphan_reaper import Claim, OrphanReaper
from zotd.process.service import Service, start_service
from zotd.process.subreaper import orphans_adopted

__all__ = ["Child", "Claim", "Ledger", "OrphanReaper", "Service", "orphans_adopted", "spawn", "start_service"]
