"""The types of ACP v1 that `zot acp` and `zotd.adapters` use: parameters, results, updates (agentclientprotocol.com/protocol/v1).

Names follow the protocol, in snake case. Unused fields are missing here; msgspec skips them.
"""

from msgspec import field

from zotd.wire.base import Frozen

VERSION = 1
"""The supported version of the protocol."""


class Acp(Frozen, frozen=True, rename="camel"):
    """Base of all ACP types, which use camel case in JSON."""


class Empty(Acp, frozen=True):
    """An object without fields, used for many results and for supported capabilities."""


# --- content --------------------------------------------------------------------------------------------------------


class TextBlock(Acp, frozen=True, tag_field="type", tag="text"):
    """Text; Markdown if it comes from a model."""

    text: str


class ImageBlock(Acp, frozen=True, tag_field="type", tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str


class AudioBlock(Acp, frozen=True, tag_field="type", tag="audio"):
    """Audio, which is not supported."""


class LinkBlock(Acp, frozen=True, tag_field="type", tag="resource_link"):
    """A link to a file that the agent can read itself."""

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
    """Name and version of an editor or agent."""

    name: str
    version: str = ""
    title: str | None = None


class ClientSession(Acp, frozen=True):
    """Capabilities of the editor for sessions."""

    notices: Empty | None = None


class FileSystem(Acp, frozen=True):
    """What the editor does with files."""

    read_text_file: bool = False
    write_text_file: bool = False


class ElicitationCapability(Acp, frozen=True):
    """How the editor asks a person (unstable)."""

    form: Empty | None = None


class ClientMeta(Frozen, frozen=True):
    """Capabilities that are not part of the protocol."""

    terminal_output: object = None
    """True: it shows terminals that the agent fills, see `CallMeta`."""


class ClientCapabilities(Acp, frozen=True):
    """Capabilities of the editor, as far as they are used."""

    elicitation: ElicitationCapability | None = None
    fs: FileSystem | None = None
    session: ClientSession | None = None
    terminal: bool | None = None
    meta: ClientMeta | None = field(default=None, name="_meta")


class Initialize(Acp, frozen=True):
    """Parameters of `initialize`."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None


class PromptCapabilities(Acp, frozen=True):
    """What a prompt may contain besides text and links."""

    image: bool = False
    embedded_context: bool = False


class McpCapabilities(Acp, frozen=True):
    """Supported transports of MCP servers besides stdio."""

    http: bool = False
    sse: bool = False


class SessionCapabilities(Acp, frozen=True):
    """Supported optional methods."""

    list: Empty | None = None
    resume: Empty | None = None
    close: Empty | None = None
    delete: Empty | None = None
    fork: Empty | None = None


class AgentCapabilities(Acp, frozen=True):
    """Capabilities of `zot acp`."""

    load_session: bool
    prompt_capabilities: PromptCapabilities
    mcp_capabilities: McpCapabilities
    session_capabilities: SessionCapabilities


class AuthMethod(Acp, frozen=True):
    """One method to log in."""

    id: str
    name: str
    description: str


class Initialized(Acp, frozen=True):
    """Result of `initialize`."""

    protocol_version: int
    agent_capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]
    agent_info: Implementation


class Authenticate(Acp, frozen=True):
    """Parameters of `authenticate`: the method by which the person has logged in."""

    method_id: str


# --- sessions -------------------------------------------------------------------------------------------------------


class NamedValue(Acp, frozen=True):
    """A variable of a server's environment, or a header of requests to it."""

    name: str
    value: str


class EditorServer(Acp, frozen=True):
    """An MCP server of the editor. One without `type` is started; the others are reached by `url`."""

    name: str
    type: str = "stdio"
    command: str = ""
    args: list[str] = []  # noqa: RUF012  (msgspec copies an empty default)
    env: list[NamedValue] = []  # noqa: RUF012
    url: str = ""
    headers: list[NamedValue] = []  # noqa: RUF012


class NewSession(Acp, frozen=True):
    """Parameters of `session/new`; `cwd` is absolute."""

    cwd: str
    mcp_servers: list[dict[str, object]] | None = None


class OldSession(Acp, frozen=True):
    """Parameters of `session/load`, `session/resume` and `session/fork`."""

    session_id: str
    cwd: str
    mcp_servers: list[dict[str, object]] | None = None


class SessionParams(Acp, frozen=True):
    """Parameters of `session/close`, `session/delete` and `session/cancel`."""

    session_id: str


class Mode(Acp, frozen=True):
    """An approval mode."""

    id: str
    name: str
    description: str


class Modes(Acp, frozen=True):
    """The current mode and all available ones."""

    current_mode_id: str
    available_modes: list[Mode]


class OptionValue(Acp, frozen=True):
    """A possible value of an option."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(Acp, frozen=True, tag_field="type", tag="select"):
    """An option with its current and possible values."""

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
    """The result of `session/new` and `session/fork`."""

    session_id: str
    modes: Modes
    config_options: list[ConfigOption]


class ListSessions(Acp, frozen=True):
    """Parameters of `session/list`: an optional directory, and `next_cursor` of the previous page."""

    cwd: str | None = None
    cursor: str | None = None


class ListedSession(Acp, frozen=True):
    """A session in a list."""

    session_id: str
    cwd: str
    title: str | None
    updated_at: str


class Listed(Acp, frozen=True):
    """Result of `session/list`, newest first."""

    sessions: list[ListedSession]
    next_cursor: str | None = None


class SetModeRequest(Acp, frozen=True):
    """Parameters of `session/set_mode`."""

    session_id: str
    mode_id: str


class SetConfigOption(Acp, frozen=True):
    """Parameters of `session/set_config_option`."""

    session_id: str
    config_id: str
    value: str


class ConfigOptions(Acp, frozen=True):
    """All options with their current values."""

    config_options: list[ConfigOption]


class PromptRequest(Acp, frozen=True):
    """Parameters of `session/prompt`."""

    session_id: str
    prompt: list[ContentBlock]


class Prompted(Acp, frozen=True):
    """Result of `session/prompt`: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`."""

    stop_reason: str


# --- session/update -------------------------------------------------------------------------------------------------


class Chunk(Acp, frozen=True):
    """A part of a message, to be appended to the earlier ones."""

    content: ContentBlock
    message_id: str | None = None


class UserMessageChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="user_message_chunk"):
    """Part of a prompt of another client, or of an earlier prompt."""


class AgentMessageChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """Part of the model's reply."""


class AgentThoughtChunk(Chunk, frozen=True, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """Part of the model's reasoning."""


class TextContent(Acp, frozen=True, tag_field="type", tag="content"):
    """Output of a tool call."""

    content: ContentBlock


class Diff(Acp, frozen=True, tag_field="type", tag="diff"):
    """A change to the file at the absolute `path`; `old_text` is None for a new file."""

    path: str
    new_text: str
    old_text: str | None = None


class TerminalContent(Acp, frozen=True, tag_field="type", tag="terminal"):
    """A terminal: of the editor, or one that it shows and `CallMeta` fills."""

    terminal_id: str


CallContent = TextContent | Diff | TerminalContent


class TerminalInfo(Frozen, frozen=True):
    """A new terminal to show."""

    terminal_id: str
    cwd: str


class TerminalOutput(Frozen, frozen=True):
    """More output for a terminal."""

    terminal_id: str
    data: str


class TerminalExit(Frozen, frozen=True):
    """The command in a terminal has ended; None: it is not known how."""

    terminal_id: str
    exit_code: int | None
    signal: str | None


class CallMeta(Frozen, frozen=True):
    """What editors with `ClientMeta.terminal_output` read beside a call. Not part of the protocol, so in snake case."""

    terminal_info: TerminalInfo | None = None
    terminal_output: TerminalOutput | None = None
    terminal_exit: TerminalExit | None = None


class Location(Acp, frozen=True):
    """A file that a call works on; `line` counts from 1."""

    path: str
    line: int | None = None


class CallFields(Acp, frozen=True, kw_only=True):
    """Fields of a tool call; absent ones keep their value."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[CallContent] | None = None
    locations: list[Location] | None = None
    raw_input: dict[str, object] | None = None
    raw_output: dict[str, object] | None = None
    meta: CallMeta | None = field(default=None, name="_meta")


class ToolCallStart(CallFields, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """The first update about a tool call."""

    title: str


class ToolCallUpdate(CallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """A later update about a tool call."""


class PlanEntry(Acp, frozen=True, omit_defaults=False):
    """A step of the plan: `pending`, `in_progress` or `completed`."""

    content: str
    status: str
    priority: str = "medium"
    """Required by the protocol; zot has no priorities."""


class PlanUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="plan"):
    """The whole plan; it replaces the one before."""

    entries: list[PlanEntry]


class Hint(Acp, frozen=True):
    """Describes the arguments of a command."""

    hint: str


class AvailableCommand(Acp, frozen=True):
    """A slash command, without its slash."""

    name: str
    description: str
    input: Hint | None = None


class CommandsUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="available_commands_update"):
    """The complete list of slash commands."""

    available_commands: list[AvailableCommand]


class ModeUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """The approval mode has changed."""

    current_mode_id: str


class ConfigUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="config_option_update"):
    """The mode, the model or its reasoning has changed."""

    config_options: list[ConfigOption]


class InfoUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="session_info_update"):
    """The session got another name."""

    title: str


class Cost(Acp, frozen=True):
    """Cost of the session so far."""

    amount: float
    currency: str


class UsageUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="usage_update"):
    """Tokens in the context window, and its size."""

    used: int
    size: int
    cost: Cost


class NoticeUpdate(Acp, frozen=True, tag_field="sessionUpdate", tag="notice"):
    """A notice (`info`, `warning` or `error`), only for editors that announced support."""

    severity: str
    title: str


Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallUpdate
    | PlanUpdate
    | CommandsUpdate
    | ModeUpdate
    | ConfigUpdate
    | InfoUpdate
    | UsageUpdate
    | NoticeUpdate
)


class SessionUpdate(Acp, frozen=True):
    """Parameters of `session/update`."""

    session_id: str
    update: Update


# --- session/request_permission -------------------------------------------------------------------------------------


class PermissionOption(Acp, frozen=True):
    """A possible answer to a permission request."""

    option_id: str
    name: str
    kind: str


class RequestPermission(Acp, frozen=True):
    """Parameters of `session/request_permission`."""

    session_id: str
    tool_call: CallFields
    options: list[PermissionOption]


class PermissionOutcome(Acp, frozen=True):
    """The decision: `selected` with an option, or `cancelled`."""

    outcome: str
    option_id: str = ""


class Permission(Acp, frozen=True):
    """Result of `session/request_permission`."""

    outcome: PermissionOutcome


# --- elicitation/create (unstable) ----------------------------------------------------------------------------------


class FormField(Acp, frozen=True):
    """A field of a form, a `string`, `number` or `boolean`."""

    type: str
    title: str
    default: str | float | bool


class Form(Acp, frozen=True):
    """A JSON Schema of the type `object`."""

    type: str
    properties: dict[str, FormField]


class CreateElicitation(Acp, frozen=True):
    """Parameters of `elicitation/create`; the mode is `form`."""

    session_id: str
    tool_call_id: str
    mode: str
    message: str
    requested_schema: Form


class Elicited(Acp, frozen=True):
    """Result of `elicitation/create`: `accept` with the fields, `decline`, or `cancel`, which decides nothing."""

    action: str
    content: dict[str, object] | None = None


# --- fs/… -----------------------------------------------------------------------------------------------------------


class ReadTextFile(Acp, frozen=True):
    """Parameters of `fs/read_text_file`."""

    session_id: str
    path: str


class ReadFile(Acp, frozen=True):
    """Result of `fs/read_text_file`."""

    content: str


class WriteTextFile(Acp, frozen=True):
    """Parameters of `fs/write_text_file`."""

    session_id: str
    path: str
    content: str


# --- terminal/… -----------------------------------------------------------------------------------------------------


class CreateTerminal(Acp, frozen=True):
    """Parameters of `terminal/create`."""

    session_id: str
    command: str
    args: list[str]
    cwd: str
    output_byte_limit: int


class CreatedTerminal(Acp, frozen=True):
    """Result of `terminal/create`."""

    terminal_id: str


class OfTerminal(Acp, frozen=True):
    """Parameters of the other methods."""

    session_id: str
    terminal_id: str


class TerminalText(Acp, frozen=True):
    """Result of `terminal/output`."""

    output: str
    truncated: bool = False


class TerminalStatus(Acp, frozen=True):
    """Result of `terminal/wait_for_exit`."""

    exit_code: int | None = None
    signal: str | None = None


class CancelRequest(Acp, frozen=True):
    """Parameters of `$/cancel_request`: the request that needs no answer any more."""

    request_id: str | int
