"""How programs talk to the daemon: blocking with the standard library only, or asyncio with typed calls."""
