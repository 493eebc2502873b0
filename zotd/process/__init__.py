"""One way to run children: an own process group, a pidfd that tells when they end, a ladder that ends them."""

from zotd.process.child import Child, spawn
from zotd.process.service import Service, start_service

__all__ = ["Child", "Service", "spawn", "start_service"]
