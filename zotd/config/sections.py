"""Schema of `$ZOT_HOME/config.toml`: one struct per table, one field per setting.

The string below a field is its documentation; `scripts/reference.py` puts it into docs/configuration.md.
"""

from ipaddress import ip_address
from typing import Annotated, Literal

from msgspec import Meta, Struct

from zotd.config.kinds import (
    Cents,
    Command,
    Contact,
    Count,
    DaemonUrl,
    Days,
    Directory,
    Flag,
    GitUrl,
    Jobs,
    Label,
    Labels,
    Level,
    Levels,
    Listen,
    Money,
    Names,
    Nested,
    Part,
    PartOrNone,
    Pause,
    Places,
    Postgres,
    Seconds,
    Tokens,
    Url,
)
from zotd.config.language_servers import DiagnosticsSection
from zotd.config.users import UserQuotas
from zotd.config.vendors import ModelEntries, ProviderSection

PROVIDER = "{provider}"
"""Placeholder for the vendor's name in `api_key_command`."""


class RuleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[rules]]`; see Approvals in docs/durability.md.

    Unknown fields are errors: a misspelt `match` would otherwise make the rule match every call.
    """

    tool: Annotated[str, Meta(min_length=1)]
    action: Literal["allow", "ask", "deny"]
    match: str = "*"


Rules = Annotated[
    tuple[RuleEntry, ...],
    Meta(title='[[rules]] tables with tool, action ("allow", "ask" or "deny") and optionally match'),
]


class ApprovalSection(Struct, frozen=True, kw_only=True):
    """`[approval]`."""

    mode: Literal["yolo", "workspace", "ask", "read-only"] = "workspace"
    """Approval mode of new sessions, for tool calls that no rule matches. `workspace` runs `bash` in a jail and built-in
    tools within the same bounds, and requires approval for what leads beyond and for all extension tools; see security.md.
    `ask` requires approval for `write`, `edit`, `bash` and all extension tools. `read-only` denies those tools. `yolo` runs
    every call with all your rights, and `zot` warns of that once. `zot rpc` and embedded runtimes use `yolo` if this is
    not set."""

    unattended: Literal["park", "deny", "rules"] = "park"
    """What to do with an approval request when no attached client can decide it: `park` keeps it pending, `deny` denies
    the call, `rules` keeps it pending if an `ask` rule requires approval and denies it if only the mode does."""

    ttl_s: Pause | None = None
    """Deny an approval request that is still pending after this many seconds. Default: never."""

    notify_command: Command | None = None
    """Command to run when an approval request is pending and no attached client can decide it. `{text}` in an argument is
    replaced by a sentence that describes the request. The command is not run by a shell."""


class SandboxSection(Struct, frozen=True, kw_only=True):
    """`[sandbox]`: the jail of commands in the mode `workspace` and of `zotctl sandbox`. See security.md."""

    network: Literal["hosts", "open", "off"] = "hosts"
    """What commands in the jail may connect to: `hosts` those of `hosts` and `default_hosts`, through a proxy, `open` everything,
    `off` nothing. Landlock, which is the jail where bubblewrap does not work, cannot tell hosts apart: with `hosts` and `off`
    commands have no TCP then. `zotctl sandbox` has a flag of its own."""

    hosts: Names = ()
    """Hosts that commands may reach through the proxy, besides those of `default_hosts`: `example.org`, `*.example.org`,
    `10.1.2.3`, `10.0.0.0/8`, `localhost:8000`. Without a port, 80 and 443; `:*` means all ports. Loopback, private and other
    special addresses, also those that a name leads to, must be listed themselves."""

    default_hosts: Flag = True
    """Allow them also the registries of packages and the hosts of repositories that ordinary work needs: the list in
    `zotd/proxy/default_hosts.py`, which `zotctl sandbox show` prints."""

    extensions: Flag = True
    """Confine the extensions and MCP servers whose `sandbox` asks for it. `false`: they run with all your rights, for machines
    on which no jail works."""


class EditorSection(Struct, frozen=True, kw_only=True):
    """`[editor]`: editors that have a session open with `zot acp`. See editors.md."""

    terminals: Flag = False
    """Run the commands of `bash` in the mode `yolo` in terminals of the editor, if it has some. They see a terminal then, and end
    with the editor. In other modes they run in their jail, as always."""


class WebSection(Struct, frozen=True, kw_only=True):
    """`[web]`: searches of the model. Pages are fetched by the rules of `[sandbox]`. See security.md."""

    search: Literal["off", "brave", "tavily", "searxng", "anthropic", "openai"] = "off"
    """Who answers the tool `web_search`; sessions have the tool only then, and not with `sandbox.network = "off"`. The key is in
    `BRAVE_API_KEY`, `TAVILY_API_KEY`, `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, in the environment of `zot` or of the daemon; commands
    of the model do not see it. Queries of the model go there without a question."""

    search_url: Url | None = None
    """Where that is, if not at its own address: for SearXNG it has to be set, such as `http://localhost:8888/search`, and its JSON
    format must be enabled there."""

    search_model: str | None = None
    """The model that searches with `anthropic` and `openai`. Default: that of the vendor. Budgets count its tokens and its searches."""


class TerminalSection(Struct, frozen=True, kw_only=True):
    """`[terminal]`: settings of the terminal client; the daemon ignores them."""

    theme: Literal["auto", "default", "dark", "light", "plain"] = "auto"
    """Colour theme. `auto` picks `dark` or `light` by the terminal's background, or `default`, the terminal's own 16
    colours, if the background is unknown. `plain` uses no colours."""

    editing_mode: Literal["emacs", "vi"] = "emacs"
    """Key bindings of the prompt editor. `vi` starts in insert mode."""

    wrap: Literal["words", "terminal"] = "words"
    """How prose is wrapped. `words` breaks lines between words and indents list items. `terminal` prints each paragraph as
    one line and lets the terminal wrap it, so that a selection copies whole paragraphs. `/copy` always copies the Markdown
    of the last reply."""


class LimitsSection(Struct, frozen=True, kw_only=True):
    """`[limits]`."""

    idle_exit_s: Seconds = 1800.0
    """A daemon that was started by a client exits after being idle this long: no client attached, no run active or waiting.
    0: never."""

    session_unload_s: Seconds = 1800.0
    """Unload a session from memory after it has been idle for this long: nothing running and no client following it. The
    next request loads it again."""

    drain_s: Seconds = 60.0
    """How long after SIGTERM a run may take to reach a point it can resume from: the end of the model's reply and of its
    tool calls. 0: interrupt runs immediately."""

    retry_patience_s: Seconds = 4 * 3600.0
    """How long a run keeps retrying when the model is overloaded, rate-limited or unreachable, or when its reply is cut
    off. `zot -p` on a terminal, `zot rpc` and embedded runtimes retry for at most 60 s. 0: fail on the first error."""

    retry_pause_s: Pause = 60.0
    """Longest pause between two retries. The first pause is half a second, and each following one is twice as long. A
    vendor's `Retry-After` is honoured even if it is longer."""

    fallback_patience_s: Seconds = 30.0
    """How long a run keeps retrying a model before it asks the next one of `fallback`, at most `retry_patience_s`. When all
    have failed, the run waits for the best one as long as `retry_patience_s` says."""

    fallback_rest_s: Pause = 60.0
    """How long a model that was replaced by a fallback is not asked again, by any run. The time doubles with each further
    failure, up to 15 times of it, which also applies at once if no credit is left, a key is refused or a model is unknown."""

    attention_s: Seconds = 5.0
    """Notify an unfocused client when a run ends that took at least this long. Shorter runs cause no notification, because
    the user has most likely waited for them."""


class JournalSection(Struct, frozen=True, kw_only=True):
    """`[journal]`: where sessions are stored. See postgresql.md."""

    url: Postgres | None = None
    """A database of PostgreSQL to store the sessions in, for example `postgresql://zot@db.example.net/zot?sslmode=verify-full`.
    Requires the extra `postgres` (`pip install 'zotd[postgres]'`). Read when the daemon starts. Default: the file `zot.db`
    in `$ZOT_HOME`."""


class RetentionSection(Struct, frozen=True, kw_only=True):
    """`[retention]`: automatic deletion of old sessions. It cannot be undone; `zotctl backup` makes a copy."""

    max_age_days: Days | None = None
    """Delete sessions that have not been used for this many days. Sessions that are running, waiting, held or blocked, or
    that have a client attached, are kept. Default: never."""

    max_size_mb: Count | None = None
    """While the database is larger than this many megabytes (1 MB = 1,000,000 bytes), delete the least recently used
    sessions. Default: no limit."""

    audit_days: Days | None = None
    """Delete entries of the audit trail that are older than this many days (`docs/audit.md`). Default: never."""


class ExtensionsSection(Struct, frozen=True, kw_only=True):
    """`[ext]`."""

    tool_timeout_s: Seconds = 60.0
    """Timeout of an extension's tool calls. Tools that declare themselves interactive have none."""

    command_timeout_s: Seconds = 30.0
    """Timeout of an extension's slash commands."""

    intercept_timeout_s: Seconds = 5.0
    """Timeout of a guard's answer to one event."""

    claude_commands: Flag = False
    """Whether the slash commands in `~/.claude/commands` can be used, too (`docs/commands.md`)."""

    listed_mcp_tools: Count = 60
    """Number of tools of MCP servers up to which a model gets the list of all. With more it gets `find_tools`, which searches
    them; what it finds is added to the list."""

    claude_hooks: Flag = False
    """Whether the hooks in `~/.claude/settings.json` run, too (`docs/hooks.md`)."""

    python: str | None = None
    """Python interpreter for `tools/*.py`: a path relative to the working directory (`.venv/bin/python`) or a command in
    PATH. If unset or not found, the daemon's own interpreter is used."""


class BudgetSection(Struct, frozen=True, kw_only=True):
    """`[budget]`."""

    session_usd: Money | None = None
    """Maximum cost of one session's model requests in USD. A session's own budget takes precedence. Default: no limit."""

    session_tokens: Count | None = None
    """Maximum number of tokens of one session: input and output, cached or not. Default: no limit."""

    day_usd: Money | None = None
    """Maximum cost of all sessions per day in USD; the day starts at midnight in the daemon's time zone. Default: no limit.
    """

    day_tokens: Count | None = None
    """Maximum number of tokens of all sessions per day. Default: no limit."""

    unknown_usd: Cents = 0.01
    """Minimum cost in USD to assume for a request whose cost is unknown: it was interrupted, or its model has no known
    price."""

    unknown_tokens: Tokens = 5000
    """Minimum number of tokens to assume for a request for which the vendor reported no usage."""


class CacheSection(Struct, frozen=True, kw_only=True):
    """`[cache]`: prompts in the caches of vendors. See models.md."""

    ttl: Literal["auto", "5m", "1h", "off"] = "auto"
    """How long vendors of Anthropic's models are asked to keep the prompts of a session. `auto`: an hour once that would
    have been cheaper so far in the session than five minutes, because of pauses between its requests. `off`: not at all.
    Other vendors decide themselves."""

    notice: Flag = True
    """Show a notice, with the reason, when at least 10,000 tokens were read anew that the vendor's cache should have had."""


class CheckpointsSection(Struct, frozen=True, kw_only=True):
    """`[checkpoints]`: recorded states of the files in a directory. See checkpoints.md."""

    enabled: Flag = True
    """Record the files before each step of a run that may change them, so that `/undo` can take it back."""

    max_file_mb: Count = 10
    """Do not record files that are larger than this many megabytes (1 MB = 1,000,000 bytes)."""

    keep: Count = 1000
    """Number of checkpoints to keep of each directory. The oldest ones are removed."""


class AgentsSection(Struct, frozen=True, kw_only=True):
    """`[agents]`: subagents, which a session begins with the tool `task`. See subagents.md."""

    depth: Levels = 2
    """How many levels of subagents there are below a session. 0: none, so the model has no tool `task`."""

    at_once: Count = 4
    """Number of subagents of one level that work at once in a family, which is a session with all subagents below it. Others
    wait, in the order in which they were begun."""

    per_run: Count = 32
    """Number of subagents that one run may begin."""

    claude: Flag = False
    """Whether the agent types in `~/.claude/agents` can be used, too."""

    max_steps: Count = 100
    """Largest number of model calls in a run of a subagent. The run then fails, as with `max_steps` of a session."""


class JobsSection(Struct, frozen=True, kw_only=True):
    """`[jobs]`: commands that run in the background of a session. See jobs.md."""

    at_once: Jobs = 8
    """Number of jobs that run at once in a session. 0: none, so the model has no tools for jobs."""

    kept_at_once: Jobs = 4
    """Number of jobs that run at once in a session and go on when it ends. 0: none, so all jobs end with their session."""

    output_mb: Count = 16
    """Largest file of a job's output, in MiB. It keeps the newest part."""

    wait_s: Pause = 600
    """Longest wait of `job_wait` in seconds."""

    wake: Flag = False
    """Begin a run when a job ends while its session is idle, so that the model goes on by itself. Otherwise it reads of the
    end with the next prompt."""


class GuardSection(Struct, frozen=True, kw_only=True):
    """`[guard]`."""

    stream: Flag = False
    """Show a reply while it arrives, even if a guard may rewrite or block it afterwards."""


class LocalSection(Struct, frozen=True, kw_only=True):
    """`[local]`."""

    model: str | None = None
    """GGUF file for the provider `local`. Default: the model from the installed package."""


class TelegramSection(Struct, frozen=True, kw_only=True):
    """`[channels.telegram]`."""

    enabled: Flag = False
    """Connect to Telegram as a bot. The bot token is read from `auth.json` (`"telegram": {"api_key": ...}`) or from
    `TELEGRAM_BOT_TOKEN` in the daemon's environment."""

    base_url: Url = "https://api.telegram.org"
    """Base URL of the Bot API. Change it to use a self-hosted Bot API server."""


class ChannelsSection(Struct, frozen=True, kw_only=True):
    """`[channels]`."""

    cwd: Directory | None = None
    """Working directory of channel sessions. Default: `zot/channels` in `$XDG_DATA_HOME`, created if missing."""

    telegram: TelegramSection = TelegramSection()


EXPOSED = "TLS is required, because other machines can reach {}; set tls_cert and tls_key, or listen on 127.0.0.1"


class WebsocketSection(Struct, frozen=True, kw_only=True):
    """`[websocket]`: read when the daemon starts. Clients need a token (`zotctl token create`)."""

    listen: Listen | None = None
    """Address of the WebSocket door and the web page. Port 0 selects a free port. An address that other machines can reach
    requires `tls_cert` and `tls_key`. Default: no WebSocket door."""

    tls_cert: Directory | None = None
    """PEM file with the certificate and its chain."""

    tls_key: Directory | None = None
    """PEM file with the certificate's private key."""

    hosts: Names = ()
    """Host names accepted from clients, besides `localhost`, `127.0.0.1` and `[::1]`, for example `zot.example.org`. Add
    the port if it differs from that of `listen`. Connections with any other name are refused."""

    origins: Names = ()
    """Origins of other web pages that may connect, exactly as browsers send them: `https://zot.example.org`."""

    @property
    def is_exposed(self) -> bool:
        """Whether `listen` is a non-loopback IP address and TLS is not configured.

        False for host names: they are resolved, and checked, when the daemon opens the door.
        """
        host = (self.listen or "").rpartition(":")[0].strip("[]")
        try:
            return self.tls_cert is None and not ip_address(host).is_loopback
        except ValueError:
            return False


class FleetSection(Struct, frozen=True, kw_only=True):
    """`[fleet]`: daemons of one database forward clients to each other. Read when the daemon starts; see postgresql.md."""

    key_file: Directory | None = None
    """File with the key that all these daemons have. Default: `fleet-key` in `$ZOT_HOME`, if there is such a file."""

    address: DaemonUrl | None = None
    """URL at which the other daemons reach the WebSocket door of this one, for example `wss://box1.example.org:7777`. Default:
    the address and port of `websocket.listen`, unless that stands for all addresses of the machine."""

    labels: Labels = ()
    """What this daemon has, for prompts of batches that need it, for example a repository or a GPU. See batches.md."""

    prompts_at_once: Places = 4
    """How many prompts of batches this daemon runs at the same time. 0: none, it only takes them for others."""

    workspaces: GitUrl | None = None
    """Bare git repository that these daemons share: an absolute path, `ssh://…`, `HOST:PATH` or `https://…` without a password, which
    belongs in a git credential helper. The files of sessions are copied to it, and follow sessions to other machines. Default: files stay where they are."""

    place: Label = ""
    """Name of the machine or shared volume that has the directories of sessions. Daemons of one place take no files from each
    other, and are the first to go on with each other's sessions. Default: the host name."""


class PushSection(Struct, frozen=True, kw_only=True):
    """`[push]`: messages to browsers that have subscribed on the page. See page.md."""

    contact: Contact = "mailto:zotd@example.com"
    """Address that a push service may write to if something is wrong with the messages: a `mailto:` or `https:` URL. It is
    part of each request."""

    services: Names = ()
    """Origins of push services besides those of Chrome, Edge, Firefox and Safari: `https://push.example.org`. The daemon
    sends requests to no others."""


class WorktreeSection(Struct, frozen=True, kw_only=True):
    """`[worktree]`: how `zot -w` and `zotctl worktree add` prepare a new git worktree; the daemon ignores it."""

    include: Names = ()
    """Patterns, as in `.gitignore`, of files that git ignores and a worktree needs, for example `[".env"]`. They are copied
    from the main worktree, in addition to those that its file `.worktreeinclude` lists."""

    setup: Command | None = None
    """Command to run once in each new worktree, for example `["npm", "ci"]`. It is not run by a shell; `ZOT_MAIN_WORKTREE` in
    its environment is the directory of the main worktree. A trusted project can have its own in `.zot/config.toml`."""

    setup_timeout_s: Pause = 600.0
    """How long that command may take."""


class TelemetrySection(Struct, frozen=True, kw_only=True):
    """`[telemetry]`: read when the daemon starts. See observability.md."""

    traces: Flag = False
    """Send a trace of each run to an OpenTelemetry collector, by OTLP over HTTP. Requires the extra `otel`
    (`pip install 'zotd[otel]'`). The standard `OTEL_*` variables of the daemon's environment apply."""

    endpoint: Url | None = None
    """Base URL of the collector, to which `/v1/traces` is added. Default: what the `OTEL_*` variables say, else
    `http://localhost:4318`."""

    content: Flag = False
    """Include prompts, replies, and the arguments and results of tool calls in traces."""


class AdapterSection(Struct, frozen=True, kw_only=True):
    """`[adapters.<name>]`: changes an adapter of the catalog, or adds one. See other-agents.md."""

    command: Command | None = None
    """Program that speaks ACP for another agent, and its arguments. It is looked up on the PATH of the session's client."""

    title: str | None = None
    """Name of the agent in messages. Default for a new adapter: its name."""

    login: str | None = None
    """What to do when the agent wants a login; completes "Claude Code wants you to log in:"."""

    key_env: Names | None = None
    """Variables with API keys that the agent may read. It reads no others that zot knows as keys."""

    start_s: Pause | None = None
    """Time for the start of the agent, in seconds. Default: 60."""


class Config(Struct, frozen=True, kw_only=True):
    """All settings, with their defaults."""

    provider: str | None = None
    """Vendor of new sessions. Default: the vendor used last, else the first one with an API key."""

    model: str | None = None
    """Model of new sessions. Default: the model used last, else the vendor's default model."""

    fallback: Names = ()
    """Models to ask when a session's own model fails, best first, for example `["openai/gpt-5.5", "claude-sonnet-4-5"]`. The
    vendor may be left out if the catalog knows it. Sessions can have their own list. See models.md. Default: none."""

    reasoning: str = "off"
    """Reasoning effort of new sessions: `off`, `low`, `medium`, `high`, or another level that the model supports."""

    max_steps: Count | None = None
    """Maximum number of model calls per run in new sessions. Default: no limit."""

    compact_at: Part = 0.85
    """Summarise the transcript when it exceeds this fraction of the model's context window."""

    compact_early_at: PartOrNone = 0.7
    """Request that summary from this fraction on, while the run goes on, so that no run has to wait for it. Not for models
    that cost nothing, because local ones answer one request after the other. 0: never. See models.md."""

    resume: Literal["manual", "auto"] = "manual"
    """What to do with runs that a crash of the daemon interrupted: `manual` holds them until a user continues them
    (`/continue`), `auto` continues them when the daemon starts."""

    api_key_command: Command | None = None
    """Command that prints a vendor's API key, or nothing if it has none. `{provider}` in an argument is replaced by the
    vendor's name. The command is not run by a shell."""

    nested: Nested = "off"
    """What programs started by the daemon, such as a tool's command, may do when they connect to it. `off`: only read the
    session they belong to. `submit`: also create and prompt ephemeral sessions, whose own programs may not."""

    log_level: Level = "info"
    """Lowest level of messages in the daemon's log."""

    rules: Rules = ()
    """Rules that allow tool calls, require approval for them or deny them; they take precedence over the mode. See
    durability.md."""

    keyring: Flag = True
    """Keep the tokens of logins by subscription in the system's keyring, if the extra `[keyring]` is installed and the
    keyring works; otherwise in `logins.json`."""

    users: UserQuotas = {}
    """What users may spend in a day (UTC), in USD, and how many sessions they may have; `[users."*"]` is for all users without a
    table of their own. See users.md."""

    models: ModelEntries = ()
    """Models that the catalog does not know, or knows wrongly. See models.md."""

    approval: ApprovalSection = ApprovalSection()
    sandbox: SandboxSection = SandboxSection()
    limits: LimitsSection = LimitsSection()
    journal: JournalSection = JournalSection()
    retention: RetentionSection = RetentionSection()
    budget: BudgetSection = BudgetSection()
    cache: CacheSection = CacheSection()
    checkpoints: CheckpointsSection = CheckpointsSection()
    ext: ExtensionsSection = ExtensionsSection()
    diagnostics: DiagnosticsSection = DiagnosticsSection()
    guard: GuardSection = GuardSection()
    agents: AgentsSection = AgentsSection()
    jobs: JobsSection = JobsSection()
    editor: EditorSection = EditorSection()
    web: WebSection = WebSection()
    terminal: TerminalSection = TerminalSection()
    local: LocalSection = LocalSection()
    channels: ChannelsSection = ChannelsSection()
    websocket: WebsocketSection = WebsocketSection()
    fleet: FleetSection = FleetSection()
    push: PushSection = PushSection()
    telemetry: TelemetrySection = TelemetrySection()
    worktree: WorktreeSection = WorktreeSection()
    providers: dict[str, ProviderSection] = {}
    adapters: dict[str, AdapterSection] = {}

    def __post_init__(self) -> None:
        if self.api_key_command and not any(PROVIDER in word for word in self.api_key_command):
            # Without it, the command would print the same key for all vendors, and it would be sent to all of them.
            raise ValueError(f"api_key_command must contain {PROVIDER}, which is replaced by the vendor's name")
        if self.web.search == "searxng" and self.web.search_url is None:
            raise ValueError("web: search_url must be set for searxng, which has no address of its own")
        if (self.websocket.tls_cert is None) != (self.websocket.tls_key is None):
            raise ValueError("websocket: tls_cert and tls_key must be set together")
        if self.websocket.is_exposed:
            raise ValueError(f"websocket.listen: {EXPOSED.format(self.websocket.listen)}")
