"""Leaving, and what is said then."""

from zottui.commands.command import Command
from zottui.desk import Desk


async def leave(desk: Desk, _: str) -> None:
    """End this client; the session goes on."""
    desk.leave()


COMMANDS = (
    Command("detach", "leave; what runs goes on", leave),
    Command("exit", "leave; what runs goes on", leave),
)
