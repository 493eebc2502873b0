"""The slash commands that another agent offers (`available_commands_update`).

An agent may list them before it has answered `session/new`, or while it replays a session that it loads. So lists are kept by the
agent's session, and read for the one that is on record.
"""

from collections.abc import Sequence

from zotd.sanitize import blanked, is_harmless
from zotd.wire.acp_reports import ReportedCommand, ReportedCommands, UpdateKind
from zotd.wire.api import Completion
from zotd.wire.base import decode

MAX_COMMANDS = 500
"""Most commands of one agent; those after them are left out."""

NAME_CHARS = 100
"""Longest name. A command with a longer one is left out: cut, it would be another one."""

DETAIL_CHARS = 200
"""Longest description, and longest hint."""

SESSIONS = 4
"""How many of the agent's sessions are remembered; one is ours, and a list for any other costs only a place."""


class AgentOffers:
    """What the process of one agent offers, by the agent's id of the session."""

    def __init__(self, source: str) -> None:
        """`source` names the agent in completions."""
        self._source = source
        self._listed: dict[str, Sequence[Completion]] = {}

    def take(self, session: str, update: bytes) -> None:
        """Keep the commands that an update lists, instead of those before; other updates are skipped. Raises BadFrameError."""
        if decode(update, UpdateKind).session_update != "available_commands_update":
            return
        listed = decode(update, ReportedCommands).available_commands
        self._listed.pop(session, None)
        self._listed[session] = self._usable(listed)
        if len(self._listed) > SESSIONS:
            del self._listed[next(iter(self._listed))]

    def of(self, session: str | None) -> Sequence[Completion] | None:
        """Return the commands in this session of the agent; None: it has not listed any yet."""
        return None if session is None else self._listed.get(session)

    def _usable(self, listed: Sequence[ReportedCommand]) -> Sequence[Completion]:
        found = dict[str, Completion]()
        for one in listed:
            if len(found) == MAX_COMMANDS:
                break
            if _can_be_typed(one.name):
                hint = "" if one.input is None else on_one_line(one.input.hint)
                found.setdefault(one.name, Completion(one.name, on_one_line(one.description or ""), self._source, hint))
        return list(found.values())


def _can_be_typed(name: str) -> bool:
    """Whether it is one word that a person could type behind a slash."""
    return 0 < len(name) <= NAME_CHARS and is_harmless(name) and name.split() == [name] and not name.startswith("/")


def on_one_line(text: str) -> str:
    """The beginning of a text, which may be megabytes long, on one line."""
    return blanked(text[: 2 * DETAIL_CHARS])[:DETAIL_CHARS]
