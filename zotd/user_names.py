"""Names of users: people and programs that sessions belong to (`docs/users.md`)."""

import re

CHANNEL = "channel:"
"""How the names of senders of channels begin. No other name has a colon, so no token can name a sender."""

WORDS = "1 to 64 letters, digits, dots, dashes, underscores or @"
"""What the name of a user has, for messages."""

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")


def is_user_name(name: str) -> bool:
    """Whether a token may have this user."""
    return _NAME.fullmatch(name) is not None


def sender_name(channel: str, sender: str) -> str:
    """Return the user that a sender of a messaging channel is, which the audit trail names, too."""
    return f"{CHANNEL}{channel}:{sender}"
