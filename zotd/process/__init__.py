"""One way to run children: an own process group, a pidfd that tells when they end, a ladder that ends them."""

from zotd.process.child import Child, spawn

__all__ = ["Child", "spawn"]
