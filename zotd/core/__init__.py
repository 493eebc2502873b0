"""Decisions, without I/O: no asyncio, no clock, no file, no socket."""
