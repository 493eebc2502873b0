"""Commands in messages that begin with a slash. Other such messages, for example paths, are prompts."""

from msgspec import Struct

from zotd.sessions.session import Session

NAMES = ("new", "compact", "info", "stop", "allow", "deny", "change", "help", "start")
"""Names of the commands. Telegram sends `start` when a person opens a conversation."""

HELP = """\
Write something, and the agent answers.
/new begins a new conversation
/compact summarises this one to make room
/info shows its model, directory, size and cost
/stop aborts the current run
/allow and /deny answer a question about a call
/change approves a plan with your steps, which follow it"""

NEW = "A new conversation begins with your next message."
NOTHING_YET = "There is no conversation yet."
IDLE = "Nothing is running."
STOPPING = "Stopping."
REST = "Waiting messages continue with your next message."


class ChatCommand(Struct, frozen=True):
    """A command in a message."""

    name: str
    argument: str = ""
    """The rest of the message after the name, which may have several lines."""


def read(text: str) -> ChatCommand | None:
    """Parse a message; return None if it is a prompt."""
    word, rest = (*text.split(maxsplit=1), "", "")[:2]
    name = word.removeprefix("/").partition("@")[0].lower()  # in groups, Telegram adds the bot's name
    return ChatCommand(name, rest.strip()) if word.startswith("/") and name in NAMES else None


def info(session: Session | None) -> str:
    """Describe a conversation in a few lines."""
    if session is None:
        return NOTHING_YET
    row = session.ledger.row
    tokens = row.usage.input + row.usage.cache_read + row.usage.cache_write + row.usage.output
    lines = [
        f"session {row.id} ({session.state})",
        f"model {session.ledger.transcript.fallback.label or row.settings.label}",
        f"directory {row.cwd}",
        f"{row.messages} messages, {tokens} tokens, ${row.usage.cost_usd:.2f}",
    ]
    waiting = len(session.work.queue.items())
    return "\n".join(lines + ([f"{waiting} waiting"] if waiting else []))


def stop(session: Session | None) -> str:
    """Abort the run; return the reply."""
    if session is None or session.state != "running":
        return IDLE
    session.abort()
    return f"{STOPPING} {REST}" if session.work.queue.items() else STOPPING
