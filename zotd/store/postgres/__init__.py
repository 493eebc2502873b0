"""The journal on PostgreSQL. Nothing imports this package unless a daemon is told to use it: its driver takes half a second."""
