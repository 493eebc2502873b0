"""Known adapters, as data: programs that speak ACP for an agent of others ([other-agents.md](docs/other-agents.md)).

A row says how it is started and what a user has to do first. What the agent can do is not here: it says so itself.
"""

import shutil
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from zotd.config.sections import AdapterSection

START_S = 60.0
"""How long an adapter has for its start and for opening a session, in seconds. Some load hundreds of megabytes first."""


class Adapter(Struct, frozen=True, kw_only=True):
    """One adapter."""

    name: str
    title: str
    """The agent's name, for people."""
    command: tuple[str, ...]
    """The program and its arguments; looked up on the PATH of the session's client."""
    install: str = ""
    """Command that installs it."""
    login: str = ""
    """What to do when the agent wants a login, as an instruction."""
    keys: tuple[str, ...] = ()
    """Variables with API keys that it may read. Others that `zot` knows as keys are withheld, as from tools."""
    start_s: float = START_S
    """How long it has for its start, in seconds."""

    def found(self, path: str | None) -> str | None:
        """Return the program on this PATH; None: it is not installed. Blocks for a moment."""
        return shutil.which(self.command[0], path=path)


ADAPTERS = (
    Adapter(
        name="claude",
        title="Claude Code",
        command=("claude-agent-acp",),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        login="run claude and log in with /login, or set ANTHROPIC_API_KEY",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ),
    Adapter(
        name="codex",
        title="Codex",
        command=("codex-acp",),
        install="npm install -g @zed-industries/codex-acp",
        login="run codex login, or set OPENAI_API_KEY",
        keys=("OPENAI_API_KEY", "CODEX_API_KEY"),
    ),
    Adapter(
        name="gemini",
        title="Gemini CLI",
        command=("gemini", "--experimental-acp"),
        install="npm install -g @google/gemini-cli",
        login="run gemini and log in, or set GEMINI_API_KEY",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    Adapter(
        name="qwen",
        title="Qwen Code",
        command=("qwen", "--acp"),
        install="npm install -g @qwen-code/qwen-code",
        login="run qwen and log in with /auth, or set OPENAI_API_KEY",
        keys=("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
    ),
    Adapter(
        name="kimi",
        title="Kimi Code",
        command=("kimi", "acp"),
        install="npm install -g @moonshot-ai/kimi-code",
        login="run kimi and log in with /login",
        keys=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    ),
    Adapter(
        name="hermes",
        title="Hermes Agent",
        command=("hermes-acp",),
        install="uv tool install 'hermes-agent[acp]'",
        login="run hermes-acp --setup",
        keys=("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY"),
    ),
    Adapter(
        name="vibe",
        title="Mistral Vibe",
        command=("vibe-acp",),
        install="uv tool install mistral-vibe",
        login="run vibe --setup, or set MISTRAL_API_KEY",
        keys=("MISTRAL_API_KEY",),
    ),
    Adapter(
        name="opencode",
        title="OpenCode",
        command=("opencode", "acp"),
        install="npm install -g opencode-ai",
        login="run opencode auth login",
    ),
)
"""By their usual order in lists."""


def new_adapter(name: str) -> Adapter:
    """Return an adapter of which only the name is known."""
    return Adapter(name=name, title=name, command=(name,))


def known_adapters(own: Mapping[str, AdapterSection]) -> dict[str, Adapter]:
    """Return the adapters of the catalog as the configuration changes them, and those that only it has, by name."""
    found = {one.name: one for one in ADAPTERS}
    for name, section in own.items():
        base = found.get(name) or new_adapter(name)
        changes = {field: getattr(section, field) for field in ("command", "title", "login", "start_s")}
        changes["keys"] = section.key_env
        found[name] = replace(base, **{field: value for field, value in changes.items() if value is not None})
    return found
