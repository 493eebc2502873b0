"""What an agent of others sends over ACP v1, as far as `zotd.adapters` reads it (agentclientprotocol.com/protocol/v1).

More lenient than `zotd.wire.acp`, which has what `zot acp` sends: adapters add kinds of updates and content, and leave fields out
that the protocol requires. What is unknown is skipped.
"""

import msgspec

from zotd.wire.acp import Acp, Empty, Location

# --- initialize, sessions ---------------------------------------------------------------------------------------------


class ReportedPromptCapabilities(Acp, frozen=True):
    """What a prompt may contain besides text and links."""

    image: bool | None = None


class ReportedSessionCapabilities(Acp, frozen=True):
    """Supported optional methods."""

    resume: Empty | None = None
    fork: Empty | None = None


class ReportedCapabilities(Acp, frozen=True):
    """What the agent can do."""

    load_session: bool | None = None
    prompt_capabilities: ReportedPromptCapabilities | None = None
    session_capabilities: ReportedSessionCapabilities | None = None


class Introduction(Acp, frozen=True):
    """Result of `initialize`."""

    protocol_version: int
    agent_capabilities: ReportedCapabilities | None = None


NOT_SENT = msgspec.Raw(b"null")


class ReopenedSession(Acp, frozen=True, kw_only=True):
    """Result of `session/load` and `session/resume`. What can be chosen is read apart: a session is good without it."""

    modes: msgspec.Raw = NOT_SENT
    config_options: msgspec.Raw = NOT_SENT


class OpenedSession(ReopenedSession, frozen=True, kw_only=True):
    """Result of `session/new` and `session/fork`."""

    session_id: str


class ReportedMode(Acp, frozen=True):
    """A mode of the agent."""

    id: str
    name: str | None = None
    description: str | None = None


class ReportedModes(Acp, frozen=True):
    """The modes of the agent, and the one that it is in."""

    current_mode_id: str
    available_modes: list[ReportedMode]


class ReportedValue(Acp, frozen=True):
    """A value of an option, or a group of values, which has `options`."""

    value: str = ""
    name: str | None = None
    description: str | None = None
    options: tuple["ReportedValue", ...] = ()


class ReportedOption(Acp, frozen=True):
    """Something that people can choose: `select` from a list, or other types, which are skipped."""

    id: str
    name: str | None = None
    type: str = "select"
    category: object = None
    current_value: object = None
    options: tuple[ReportedValue, ...] = ()


class ChangedMode(Acp, frozen=True):
    """The agent is in another mode now."""

    current_mode_id: str


class ChangedOptions(Acp, frozen=True):
    """All options as they are now: an update, and the result of `session/set_config_option`."""

    config_options: msgspec.Raw = NOT_SENT


class ChosenMode(Acp, frozen=True):
    """Parameters of `session/set_mode`."""

    session_id: str
    mode_id: str


class ChosenOption(Acp, frozen=True):
    """Parameters of `session/set_config_option`."""

    session_id: str
    config_id: str
    value: str


class Ignored(Acp, frozen=True):
    """A result of which nothing is used."""


class ReportedTokens(Acp, frozen=True):
    """Tokens of a turn; None: not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class TurnResult(Acp, frozen=True):
    """Result of `session/prompt`."""

    stop_reason: str
    usage: ReportedTokens | None = None


# --- session/update ---------------------------------------------------------------------------------------------------


class ReportedContent(Acp, frozen=True):
    """A content block of any type."""

    type: str = ""
    text: str | None = None
    uri: str | None = None


class ReportedOutput(Acp, frozen=True):
    """A part of what a tool call shows: `content`, `diff` or `terminal`."""

    type: str = ""
    content: ReportedContent | None = None
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None


class ReportedCall(Acp, frozen=True):
    """Fields of a tool call; absent ones keep their value."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[ReportedOutput] | None = None
    locations: list[Location] | None = None
    raw_input: object = None
    raw_output: object = None


class ReportedChunk(Acp, frozen=True):
    """A part of a message."""

    content: ReportedContent


class ReportedCost(Acp, frozen=True):
    """Cost of the agent's session so far."""

    amount: float
    currency: str = "USD"


class ReportedUsage(Acp, frozen=True):
    """Cost so far, if the agent knows it."""

    cost: ReportedCost | None = None


class ReportedStep(Acp, frozen=True):
    """A step of the agent's plan: `pending`, `in_progress` or `completed`."""

    content: str
    status: str = "pending"


class ReportedPlan(Acp, frozen=True):
    """The whole plan; it replaces the one before."""

    entries: list[ReportedStep]


class ReportedHint(Acp, frozen=True):
    """What arguments a command takes, for people."""

    hint: str = ""


class ReportedCommand(Acp, frozen=True):
    """A slash command of the agent, without its slash."""

    name: str
    description: str | None = None
    input: ReportedHint | None = None


class ReportedCommands(Acp, frozen=True):
    """All slash commands; the list replaces the one before."""

    available_commands: list[ReportedCommand]


class UpdateParams(Acp, frozen=True):
    """Parameters of `session/update`."""

    session_id: str
    update: msgspec.Raw


class UpdateKind(Acp, frozen=True):
    """Which update it is."""

    session_update: str


# --- session/request_permission ---------------------------------------------------------------------------------------


class OfferedOption(Acp, frozen=True):
    """A possible answer: `allow_once`, `allow_always`, `reject_once` or `reject_always`."""

    option_id: str
    kind: str = ""


class PermissionRequest(Acp, frozen=True):
    """Parameters of `session/request_permission`."""

    session_id: str
    tool_call: ReportedCall
    options: list[OfferedOption]
