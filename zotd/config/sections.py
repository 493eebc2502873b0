"""The keys of `$ZOT_HOME/config.toml`, by tables: each is a field, whose text below it says what it does."""

from ipaddress import ip_address
from typing import Annotated, Literal

from msgspec import Meta, Struct

YEAR_S = 365 * 24 * 3600
"""Longest duration: more is a slip of the pen."""

PROVIDER = "{provider}"
"""Stands for the vendor's name in `api_key_command`."""

# The titles complete the sentence "KEY must be ...".
Count = Annotated[int, Meta(ge=1, title="a whole number, at least 1")]
Days = Annotated[int, Meta(ge=1, le=36_500, title="a whole number of days, from 1 to 36,500")]
Tokens = Annotated[int, Meta(ge=0, title="a number of tokens")]
Money = Annotated[float, Meta(gt=0, title="an amount of USD above 0")]
Cents = Annotated[float, Meta(ge=0, title="an amount of USD, 0 or more")]
Part = Annotated[float, Meta(gt=0, le=1, title="a number above 0, at most 1")]
Pause = Annotated[float, Meta(gt=0, le=YEAR_S, title="a number of seconds above 0, at most a year")]
Seconds = Annotated[float, Meta(ge=0, le=YEAR_S, title="a number of seconds, from 0 to a year")]
Url = Annotated[str, Meta(pattern=r"^https?://[^/@\s]+(/\S*)?\Z", title="an http(s) URL without a user name")]
Command = Annotated[tuple[str, ...], Meta(min_length=1, title="a list of texts, the program first")]
Names = Annotated[tuple[str, ...], Meta(title="a list of texts")]
Listen = Annotated[
    str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+):[0-9]{1,5}\Z", title="HOST:PORT, as in 127.0.0.1:8765")
]
Flag = Annotated[bool, Meta(title="true or false")]
Directory = Annotated[str, Meta(pattern=r"^/", title="an absolute path")]
Nested = Literal["off", "submit"]
Level = Literal["debug", "info", "warning", "error"]


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[rules]]` (`docs/durability.md`, Approvals); a misspelt `match` must not become "everything"."""

    tool: Annotated[str, Meta(min_length=1)]
    action: Literal["allow", "ask", "deny"]
    match: str = "*"


Rules = Annotated[
    tuple[Rule, ...], Meta(title='tables [[rules]] with tool, action ("allow", "ask" or "deny") and, if wanted, match')
]


class Approval(Struct, frozen=True, kw_only=True):
    """`[approval]`."""

    mode: Literal["yolo", "ask", "read-only"] = "yolo"
    """What becomes of calls without a rule in new sessions: `yolo` runs them, `ask` asks about `write`, `edit`, `bash`
    and all tools of extensions, `read-only` denies those."""

    unattended: Literal["park", "deny", "rules"] = "park"
    """What becomes of a question when nobody is attached who can decide: it waits (`park`), it is denied (`deny`), or
    it waits when a rule asks, and is denied when only the mode does (`rules`)."""

    ttl_s: Annotated[float, Meta(gt=0, le=YEAR_S, title="a number of seconds above 0, at most a year")] | None = None
    """A question that nobody has decided within this time is denied; without it, it waits for ever."""

    notify_command: Command | None = None
    """Run when a question waits and nobody is attached who can decide; `{text}` in its words stands for a sentence
    about it. No shell is involved."""


class Terminal(Struct, frozen=True, kw_only=True):
    """`[terminal]`: read by `zot`, and not by the daemon."""

    theme: Literal["auto", "default", "dark", "light", "plain"] = "auto"
    """Colours; `auto` asks the terminal whether it is light or dark, and uses its own 16 where it does not say."""

    editing_mode: Literal["emacs", "vi"] = "emacs"
    """Whose keys the editor has; vi begins in INSERT."""

    wrap: Literal["words", "terminal"] = "words"
    """Where prose is broken. `words`: between words, with list items hanging; `terminal`: paragraphs are single lines
    that the terminal wraps, which copies them whole. `/copy` copies the Markdown of the last reply either way."""


class Limits(Struct, frozen=True, kw_only=True):
    """`[limits]`."""

    idle_exit_s: Seconds = 1800.0
    """A daemon that a client has started ends when for so long nobody was attached and nothing ran or waited.
    0: it does not end by itself."""

    session_unload_s: Seconds = 1800.0
    """A session leaves memory when for so long nobody followed it and nothing of it ran; it comes back when asked for.
    """

    drain_s: Seconds = 60.0
    """After SIGTERM, runs may take so long to come to where they can be gone on with: the end of a model's reply and of
    the calls in it. 0: they are cut at once."""

    retry_patience_s: Seconds = 4 * 3600.0
    """How long a run asks a model again that is overloaded, rate-limited or out of reach, or whose reply breaks off.
    `zot -p` on a terminal, `zot rpc` and embedded runtimes wait 60 s at most. 0: the first failure ends the run."""

    retry_pause_s: Pause = 60.0
    """The longest pause between two such tries; pauses begin with half a second and double. A vendor's `Retry-After` may
    be longer."""

    attention_s: Seconds = 5.0
    """Whoever is not looking is told of the end of a run that took at least so long: who gave a shorter one has most
    likely waited for it."""


class Retention(Struct, frozen=True, kw_only=True):
    """`[retention]`: sessions that the daemon deletes by itself. They cannot be restored; `zotctl backup` keeps a copy."""

    max_age_days: Days | None = None
    """Delete sessions that were last used so long ago. Those that run, wait, are held or have a client attached stay.
    Without it, none."""

    max_size_mb: Count | None = None
    """Delete the sessions that were used longest ago while the database has more than so many millions of bytes. Without
    it, none."""


class Ext(Struct, frozen=True, kw_only=True):
    """`[ext]`."""

    tool_timeout_s: Seconds = 60.0
    """How long a tool of an extension may take, unless it says that it is interactive."""

    command_timeout_s: Seconds = 30.0
    """How long a slash command of an extension may take."""

    intercept_timeout_s: Seconds = 5.0
    """How long a guard may think about one question."""

    python: str | None = None
    """The interpreter of `tools/*.py`: a path, from the working directory (`.venv/bin/python`), or a word for PATH;
    without it, or where it is not there, the daemon's own."""


class Budget(Struct, frozen=True, kw_only=True):
    """`[budget]`."""

    session_usd: Money | None = None
    """What the model requests of one session may cost, unless it has a budget of its own; without it, no limit."""

    session_tokens: Count | None = None
    """The same in tokens: all that are read and written, cached or not."""

    day_usd: Money | None = None
    """What all sessions together may cost from midnight to midnight, in the daemon's time zone; without it, no limit."""

    day_tokens: Count | None = None
    """The same in tokens."""

    unknown_usd: Cents = 0.01
    """The least that a request counts with whose cost nobody knows: it was cut, or its model has no known price."""

    unknown_tokens: Tokens = 5000
    """The least that a request counts with whose tokens the vendor did not say."""


class Guard(Struct, frozen=True, kw_only=True):
    """`[guard]`."""

    stream: Flag = False
    """Text is shown while it arrives although a guard may rewrite or hide it afterwards."""


class Local(Struct, frozen=True, kw_only=True):
    """`[local]`."""

    model: str | None = None
    """A GGUF file for the provider `local`; without it, the model of the package that it needs."""


class Telegram(Struct, frozen=True, kw_only=True):
    """`[channels.telegram]`."""

    enabled: Flag = False
    """Talk to the Telegram bot whose token is in `auth.json` (`"telegram": {"api_key": ...}`) or in the daemon's
    `TELEGRAM_BOT_TOKEN`."""

    base_url: Url = "https://api.telegram.org"
    """Where its Bot API is; another one for a Bot API server of one's own."""


class Channels(Struct, frozen=True, kw_only=True):
    """`[channels]`."""

    cwd: Directory | None = None
    """Where the sessions of messaging channels work; without it `channels` in `$ZOT_HOME`, which is made."""

    telegram: Telegram = Telegram()


EXPOSED = "other machines can reach {}, which needs TLS: set tls_cert and tls_key, or listen on 127.0.0.1"


class Websocket(Struct, frozen=True, kw_only=True):
    """`[websocket]`: read when the daemon starts; who comes in needs a token (`zotctl token create`)."""

    listen: Listen | None = None
    """Where the WebSocket door listens, and the page with it; without it there is none. Port 0 is any that is free. An
    address that other machines can reach needs `tls_cert` and `tls_key`."""

    tls_cert: Directory | None = None
    """The certificate, with those that it was signed by: a file in PEM."""

    tls_key: Directory | None = None
    """Its private key: a file in PEM."""

    hosts: Names = ()
    """What clients may call this machine besides `localhost`, `127.0.0.1` and `[::1]`: `zot.example.org`, and with a port
    where it is another one than that of `listen`. Whoever comes by another name is refused."""

    origins: Names = ()
    """Web pages that may connect besides our own: `https://zot.example.org`, exactly as browsers write it."""

    @property
    def is_exposed(self) -> bool:
        """Others can reach the address that it says, without TLS; of a name nobody knows here."""
        host = (self.listen or "").rpartition(":")[0].strip("[]")
        try:
            return self.tls_cert is None and not ip_address(host).is_loopback
        except ValueError:
            return False


class Provider(Struct, frozen=True, kw_only=True):
    """`[providers.<name>]`."""

    base_url: Url | None = None
    """Where requests for this vendor go, with keys from the environment and `auth.json`; without it, its own host."""


class Config(Struct, frozen=True, kw_only=True):
    """The daemon's configuration."""

    provider: str | None = None
    """Vendor of new sessions; without it, the one used last, else the first that has a key."""

    model: str | None = None
    """Model of new sessions; without it, the one used last, else the vendor's default."""

    reasoning: str = "off"
    """How much new sessions let the model think: `off`, `low`, `medium`, `high`, and what else the model knows."""

    max_steps: Count | None = None
    """Model calls that a run of a new session may take; without it, no limit."""

    compact_at: Part = 0.85
    """The transcript is summarised when it fills this part of the model's context window."""

    resume: Literal["manual", "auto"] = "manual"
    """What happens to runs that a crash of the daemon has cut: they wait for a person (`/continue`), or go on by
    themselves."""

    api_key_command: Command | None = None
    """Prints the key of the vendor whose name stands where it says `{provider}`, or nothing; no shell is involved."""

    nested: Nested = "off"
    """What programs may do that the daemon has started, such as a tool's command: `off`, they read the session that they
    belong to; `submit`, they also open ephemeral sessions, one level deep, and prompt those."""

    log_level: Level = "info"
    """What the daemon's log holds."""

    rules: Rules = ()
    """What is allowed, asked about and denied, whatever the mode is; see durability.md."""

    approval: Approval = Approval()
    limits: Limits = Limits()
    retention: Retention = Retention()
    budget: Budget = Budget()
    ext: Ext = Ext()
    guard: Guard = Guard()
    terminal: Terminal = Terminal()
    local: Local = Local()
    channels: Channels = Channels()
    websocket: Websocket = Websocket()
    providers: dict[str, Provider] = {}

    def __post_init__(self) -> None:
        if self.api_key_command and not any(PROVIDER in word for word in self.api_key_command):
            # Without it, one vendor's key would be sent to all of them.
            raise ValueError(f"api_key_command must contain {PROVIDER} where the vendor's name belongs")
        if (self.websocket.tls_cert is None) != (self.websocket.tls_key is None):
            raise ValueError("websocket: tls_cert and tls_key belong together; set both")
        if self.websocket.is_exposed:  # names are asked for when the door is opened
            raise ValueError(f"websocket.listen: {EXPOSED.format(self.websocket.listen)}")
