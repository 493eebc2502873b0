"""Advice for users whose client and daemon have different versions. A client never ends a daemon for that."""

from zotd.client.blocking import Json
from zotd.client.fields import text
from zotd.wire.version import VERSION, is_newer


def advice(said: Json) -> str | None:
    """Return a line for the user with the command that helps, or None if the versions are equal.

    `said` is the daemon's response to `hello` or `daemon.status`.
    """
    theirs = text(said, "version")
    if theirs == VERSION:
        return None
    if is_newer(theirs, VERSION):
        return f"zotd has version {theirs}, this program {VERSION}: update this program"
    return f"zotd has version {theirs or '(unknown)'}, this program {VERSION}: zotctl restart --when-idle"
