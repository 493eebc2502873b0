"""What ACP v1 says, as far as we say or hear it: parameters, results, updates (agentclientprotocol.com/protocol/v1).

Names are theirs, in snake case. Fields that we do not use are not here; msgspec skips them.
"""

from zotd.wire.base import Frozen

VERSION = 1
"""The one version of the protocol that we speak."""


class Acp(Frozen, frozen=True, rename="camel"):
    """A value of ACP."""


class Empty(Acp, frozen=True):
    """An object without fields: many results, and capabilities that are there."""


# --- content --------------------------------------------------------------------------------------------------------


class TextBlock(Acp, frozen=True, tag_field="type", tag="text"):
    """Text, Markdown where a model has written it."""

    text: str


class ImageBlock(Acp, frozen=True, tag_field="type", tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str


class AudioBlock(Acp, frozen=True, tag_field="type", tag="audio"):
    """A sound, which no model of ours takes."""


class LinkBlock(Acp, frozen=True, tag_field="type", tag="resource_link"):
    """A file that the agent can read for itself."""

    uri: str
    name: str


class Contents(Acp, frozen=True):
    """A file with its content: `text`, or `blob` in base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(Acp, frozen=True, tag_field="type", tag="resource"):
    """A file that the editor has put into the prompt."""

    resource: Contents


ContentBlock = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock

# --- initialize, authenticate ---------------------------------------------------------------------------------------


class Implementation(Acp, frozen=True):
    """Who somebody is."""

    name: str
    version: str = ""
    title: str | None = None


class ClientSession(Acp, frozen=True):
    """What the editor can do about sessions."""

    notices: Empty | None = None


class ClientCapabilities(Acp, frozen=True):
    """What the editor can do."""

    session: ClientSession | None = None


class Initialize(Acp, frozen=True):
    """The editor introduces itself."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None


class PromptCapabilities(Acp, frozen=True):
    """What a prompt may hold besides text and links."""

    image: bool = False
    embedded_context: bool = False


class SessionCapabilities(Acp, frozen=True):
    """Methods beyond those that every agent has."""

    list: Empty | None = None
    resume: Empty | None = None
    close: Empty | None = None


class AgentCapabilities(Acp, frozen=True):
    """What we can do."""

    load_session: bool
    prompt_capabilities: PromptCapabilities
    session_capabilities: SessionCapabilities


class AuthMethod(Acp, frozen=True):
    """A way to log in."""

    id: str
    name: str
    description: str


class Initialized(Acp, frozen=True):
    """We introduce ourselves."""

    protocol_version: int
    agent_capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]
    agent_info: Implementation


class Authenticate(Acp, frozen=True):
    """The person has logged in, by one of our ways."""

    method_id: str


# --- sessions -------------------------------------------------------------------------------------------------------


class NewSession(Acp, frozen=True):
    """A session in the absolute directory `cwd`."""

    cwd: str
    mcp_servers: list[dict[str, object]] | None = None


class OldSession(Acp, frozen=True):
    """Parameters of `session/load` and `session/resume`."""

    session_id: str
    cwd: str
    mcp_servers: list[dict[str, object]] | None = None


class SessionParams(Acp, frozen=True):
    """Parameters of `session/close` and `session/cancel`."""

    session_id: str


class Mode(Acp, frozen=True):
    """A way for the agent to work."""

    id: str
    name: str
    description: str


class Modes(Acp, frozen=True):
    """The one that is set, and all that there are."""

    current_mode_id: str
    available_modes: list[Mode]


class OptionValue(Acp, frozen=True):
    """A value of an option."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(Acp, frozen=True, tag_field="type", tag="select"):
    """Something to choose."""

    id: str
    name: str
    category: str
    current_value: str
    options: list[OptionValue]


class LoadSessionResult(Acp, frozen=True):
    """The result of `session/load` and `session/resume`."""

    modes: Modes
    config_options: list[ConfigOption]


class NewSessionResult(Acp, frozen=True):
    """The result of `session/new`."""

    session_id: str
    modes: Modes
    config_options: list[ConfigOption]


class ListSessions(Acp, frozen=True):
    """`cwd`: only those of that directory; `cursor`: what the page before said as `next_cursor`."""

    cwd: str | None = None
    cursor: str | None = None


class ListedSession(Acp, frozen=True):
    """A session in a list."""

    session_id: str
    cwd: str
    title: str | None
    updated_at: str


class Listed(Acp, frozen=True):
    """Newest first."""

    sessions: list[ListedSession]
    next_cursor: str | None = None


class SetModeRequest(Acp, frozen=True):
    """Choose a mode."""

    session_id: str
    mode_id: str


class SetConfigOption(Acp, frozen=True):
    """Choose a value."""

    session_id: str
    config_id: str
    value: str


class ConfigOptions(Acp, frozen=True):
    """All options, as they are now."""

    config_options: list[ConfigOption]


class PromptRequest(Acp, frozen=True):
    """What a person asks."""

    session_id: str
    prompt: list[ContentBlock]


class Prompted(Acp, frozen=True):
    """`end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`."""

    stop_reason: str


# --- session/update -------------------------------------------------------------------------------------------------


class Chunk(Acp, frozen=True):
    """A piece of a message."""

    content: ContentBlock
    message_id: str | None = None


class UserMessageChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="user_message_chunk"):
    """Of a prompt, which somebody else has sent or which was sent before."""


class AgentMessageChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """Of the reply."""


class AgentThoughtChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """Of the model's reasoning."""


class TextContent(Acp, frozen=True, tag_field="type", tag="content"):
    """What a call has said."""

    content: ContentBlock


class Diff(Acp, frozen=True, tag_field="type", tag="diff"):
    """What a call changes in the file at the absolute `path`; `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class Location(Acp, frozen=True):
    """A place that a call is about; `line` counts from 1."""

    path: str
    line: int | None = None


class CallFields(Acp, frozen=True, kw_only=True):
    """What is known of a call; what is absent stays as it was."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[TextContent | Diff] | None = None
    locations: list[Location] | None = None
    raw_input: dict[str, object] | None = None
    raw_output: dict[str, object] | None = None


class ToolCallStart(CallFields, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A call that is new."""

    title: str


class ToolCallUpdate(CallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """More of one that is known."""


class Hint(Acp, frozen=True):
    """What to type behind a command."""

    hint: str


class AvailableCommand(Acp, frozen=True):
    """A slash command, without its slash."""

    name: str
    description: str
    input: Hint | None = None


class CommandsUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="available_commands_update"):
    """All that there are."""

    available_commands: list[AvailableCommand]


class ModeUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """The mode was changed."""

    current_mode_id: str


class ConfigUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="config_option_update"):
    """The model, or its reasoning, was changed."""

    config_options: list[ConfigOption]


class InfoUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="session_info_update"):
    """The session was named."""

    title: str


class Cost(Acp, frozen=True):
    """Money so far."""

    amount: float
    currency: str


class UsageUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="usage_update"):
    """Tokens in the context window, and its size."""

    used: int
    size: int
    cost: Cost


class NoticeUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="notice"):
    """A line for the person; only for editors that say that they can show it. `info`, `warning` or `error`."""

    severity: str
    title: str


Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallUpdate
    | CommandsUpdate
    | ModeUpdate
    | ConfigUpdate
    | InfoUpdate
    | UsageUpdate
    | NoticeUpdate
)


class SessionUpdate(Acp, frozen=True):
    """Something of a session."""

    session_id: str
    update: Update


# --- session/request_permission -------------------------------------------------------------------------------------


class PermissionOption(Acp, frozen=True):
    """A possible answer."""

    option_id: str
    name: str
    kind: str


class RequestPermission(Acp, frozen=True):
    """A person has to decide about a call."""

    session_id: str
    tool_call: CallFields
    options: list[PermissionOption]


class PermissionOutcome(Acp, frozen=True):
    """`selected` with an option, or `cancelled`."""

    outcome: str
    option_id: str = ""


class Permission(Acp, frozen=True):
    """The answer."""

    outcome: PermissionOutcome


class CancelRequest(Acp, frozen=True):
    """The request of that id needs no answer any more."""

    request_id: str | int
