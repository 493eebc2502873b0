"""One line for whoever uses a daemon of another version than their program; nobody ends it for that."""

from zotd.client.blocking import Json
from zotd.client.fields import text
from zotd.wire.version import VERSION, is_newer


def advice(said: Json) -> str | None:
    """What to tell a person, and the command that helps; None when both are of the same version.

    `said`: what the daemon answered to `hello` or `daemon.status`.
    """
    theirs = text(said, "version")
    if theirs == VERSION:
        return None
    if is_newer(theirs, VERSION):
        return f"zotd has version {theirs}, this program {VERSION}: update this program"
    return f"zotd has version {theirs or '(unknown)'}, this program {VERSION}: zotctl restart --when-idle"
