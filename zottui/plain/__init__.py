"""The plain client: lines only, for pipes, screen readers and terminals without capabilities."""
