"""What another agent lets people choose in its session: its mode, its model, and whatever else it has.

An agent lists this when it opens a session, as `modes` or, the newer form, as `configOptions`, which then counts alone. Later it
reports changes, also those that it makes itself. What it reports before it has answered is kept until then.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from zotd.adapters.offers import SESSIONS, on_one_line
from zotd.sanitize import is_harmless
from zotd.wire.acp_reports import (
    ChangedMode,
    ChangedOptions,
    ReopenedSession,
    ReportedModes,
    ReportedOption,
    ReportedValue,
    UpdateKind,
)
from zotd.wire.api import AgentOption, AgentOptionValue
from zotd.wire.base import BadFrameError, decode

MODE = "mode"
"""The id under which `modes` are an option like the others."""

MAX_OPTIONS = 50
"""Most options of an agent."""

MAX_VALUES = 1_000
"""Most values of one: some agents list the models of all vendors."""

ID_CHARS = 200
"""Longest id of an option or a value. One that is longer is left out."""

EARLY = 8
"""Most reports about one session that are kept before it is open."""


class AgentChoices:
    """What can be chosen, by the agent's id of the session."""

    def __init__(self) -> None:
        self._options: dict[str, dict[str, AgentOption]] = {}
        self._by_mode: set[str] = set()
        """Sessions whose option `mode` is set by `session/set_mode`."""
        self._early: dict[str, list[bytes]] = {}

    def of(self, session: str) -> Sequence[AgentOption]:
        """Return the options of a session that is open."""
        return list(self._options.get(session, {}).values())

    def is_mode(self, session: str, option: str) -> bool:
        """Whether the option is set by `session/set_mode`."""
        return option == MODE and session in self._by_mode

    def opened(self, session: str, found: ReopenedSession) -> None:
        """Take what the agent has answered when it opened the session, and what it has reported since."""
        options, modes = _options_in(found.config_options), _modes_in(found.modes)
        self._options, self._by_mode = {session: options}, set()  # the one before is not ours any more
        if modes is not None and not any(_is_mode(one) for one in options.values()):
            self._by_mode.add(session)
            options[MODE] = modes
        for update in self._early.pop(session, []):
            self.take(session, update)

    def take(self, session: str, update: bytes) -> Sequence[AgentOption]:
        """Take an update; returns the options that have another value now. Other updates are skipped. Raises BadFrameError."""
        kind = decode(update, UpdateKind).session_update
        if kind not in {"current_mode_update", "config_option_update"}:
            return []
        if session not in self._options:
            self._keep(session, update)
            return []
        if kind == "config_option_update":
            return self.replaced(session, decode(update, ChangedOptions))
        return self.set(session, MODE, decode(update, ChangedMode).current_mode_id) if session in self._by_mode else []

    def replaced(self, session: str, found: ChangedOptions) -> Sequence[AgentOption]:
        """Take the list of all options; returns those that have another value now."""
        before, after = self._options[session], _options_in(found.config_options)
        if session in self._by_mode and MODE not in after:
            after[MODE] = before[MODE]
        else:
            self._by_mode.discard(session)
        self._options[session] = after
        return [one for key, one in after.items() if key in before and before[key].current != one.current]

    def set(self, session: str, option: str, value: str) -> Sequence[AgentOption]:
        """Take the value of one option; returns the option if that is another one than before."""
        options = self._options.get(session, {})
        if option not in options or options[option].current == value or not _is_id(value):
            return []
        options[option] = replace(options[option], current=value)
        return [options[option]]

    def _keep(self, session: str, update: bytes) -> None:
        kept = self._early.setdefault(session, [])
        if len(kept) < EARLY:
            kept.append(update)
        if len(self._early) > SESSIONS:
            del self._early[next(iter(self._early))]


def _options_in(raw: msgspec.Raw) -> dict[str, AgentOption]:
    """Return the options that people can choose from a list; none if they make no sense: the session is good without them."""
    try:
        found = decode(bytes(raw), list[ReportedOption])
    except BadFrameError:
        return {}
    made = dict[str, AgentOption]()
    for one in found[:MAX_OPTIONS]:
        values = _values([*one.options, *(value for group in one.options for value in group.options)])
        if one.type == "select" and _is_id(one.id) and values and isinstance(one.current_value, str):
            category = one.category if isinstance(one.category, str) else ""
            name = on_one_line(one.name or "") or one.id
            made.setdefault(one.id, AgentOption(one.id, name, one.current_value, values, on_one_line(category)))
    return made


def _modes_in(raw: msgspec.Raw) -> AgentOption | None:
    try:
        modes = decode(bytes(raw), ReportedModes)
    except BadFrameError:
        return None
    values = _values([ReportedValue(one.id, one.name, one.description) for one in modes.available_modes])
    return AgentOption(MODE, "Mode", modes.current_mode_id, values, MODE) if values else None


def _values(found: Sequence[ReportedValue]) -> list[AgentOptionValue]:
    """The values that can be chosen; groups have none of their own."""
    made = dict[str, AgentOptionValue]()
    for one in found[:MAX_VALUES]:
        if _is_id(one.value):
            name = on_one_line(one.name or "") or one.value
            made.setdefault(one.value, AgentOptionValue(one.value, name, on_one_line(one.description or "")))
    return list(made.values())


def _is_mode(option: AgentOption) -> bool:
    return MODE in {option.id, option.category}


def _is_id(text: str) -> bool:
    """Whether people could type it, and see what they have typed."""
    return 0 < len(text) <= ID_CHARS and is_harmless(text)
