"""A tool that closes over a database."""

import sqlite3

from zot import Agent

db = sqlite3.connect("shop.db")


async def orders(customer: str) -> list[str]:
    """List what a customer has ordered."""
    return [item for (item,) in db.execute("select item from orders where customer = ?", [customer])]


print(Agent(tools=[orders], builtin_tools=[]).run_sync("What has Ada ordered?").text)
