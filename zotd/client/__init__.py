"""Clients of the daemon: a blocking one that needs only the standard library, and typed ones with and without asyncio."""
