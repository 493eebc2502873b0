"""Clients of the daemon: a blocking one that uses only the standard library, and typed ones, blocking and asyncio."""
