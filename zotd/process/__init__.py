"""One way to run children: an own process group, a pidfd that tells when they end, a ladder that ends them."""
