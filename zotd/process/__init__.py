"""Runs child processes: each in a process group of its own, watched through a pidfd, ended with escalating signals.

A ledger on disk, a marker variable in the environment and a subreaper make sure that no child outlives its owner for
long, even when the owner is killed.
"""

from zotd.process.child import Child, spawn
from zotd.process.ledger import ChildLedger
from zotd.process.orphan_reaper import OrphanReaper, ServiceClaim
from zotd.process.service import Service, start_service
from zotd.process.subreaper import orphans_adopted

__all__ = [
    "Child",
    "ChildLedger",
    "OrphanReaper",
    "Service",
    "ServiceClaim",
    "orphans_adopted",
    "spawn",
    "start_service",
]
