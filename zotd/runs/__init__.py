"""Runs: the queue of a session, model requests, tool calls, compaction, recovery."""
