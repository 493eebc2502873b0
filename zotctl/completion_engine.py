"""Computes shell completions for `zot` and `zotctl`.

Flags and commands are read from the argparse parsers, so they are never out of date. Sessions, models and approvals are
requested from the daemon if it is running, worktrees from git.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from zotctl import parser_tree
from zotd import paths
from zotd.client import asking, options, place
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, strings, text

Found = Iterator[tuple[str, str]]
"""Words with their descriptions."""

FILES = ":files"
DIRECTORIES = ":dirs"
"""Ask the shell to complete file or directory names itself."""

CONNECT_S = 0.2
REMOTE_S = 1.0
ASK_S = 0.4
"""Time limits in seconds. With the start of the program, completions appear within a second."""

ABOUT_CHARS = 100
"""Most characters of a tool call shown next to its approval ID."""

PROVIDERS = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "moonshot": "Moonshot",
    "deepseek": "DeepSeek",
    "openrouter": "OpenRouter",
    "groq": "Groq",
    "mistral": "Mistral",
    "xai": "xAI",
    "together": "Together",
    "cerebras": "Cerebras",
    "google": "Google Gemini",
    "vertex": "Claude on Vertex AI",
    "bedrock": "Claude on Amazon Bedrock",
    "bedrock-aws": "Claude on Amazon Bedrock with AWS credentials",
    "bedrock-openai": "OpenAI models on Amazon Bedrock",
    "azure": "Azure OpenAI",
    "copilot": "GitHub Copilot",
    "kimi-code": "Kimi Code",
    "chatgpt": "ChatGPT",
    "lmstudio": "LM Studio",
    "vllm": "vLLM",
    "ollama": "Ollama",
    "llamacpp": "llama.cpp",
    "local": "The local model",
}
"""A copy of `zotd.providers.catalog.vendors`, which takes 0.3 s to import; a test compares them."""

AUDITED = (
    *("approve", "shell", "run_command", "set_mode", "grant.revoke", "session.agent_choose", "session.configure"),
    *("session.delete", "session.import", "session.move", "ext.install", "ext.remove", "ext.enable", "ext.disable"),
    *("trust.grant", "trust.revoke", "batch.submit", "batch.cancel", "channel.pair", "channel.unpair", "auth.login"),
    *("auth.logout", "auth.begin", "push.remove", "token.create", "token.revoke", "daemon.reload", "daemon.shutdown"),
    "daemon.drain",
)
"""A copy of the names in `zotd.api.audited`, which belongs to the daemon; a test compares them."""

ENTRIES = 500
"""Entries of the audit trail, newest first, whose accounts are offered."""

BATCHES = 50
"""Most batches offered, newest first."""

SESSIONS = 50
"""Most sessions offered, newest first."""


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the possible replacements of the last word, each with a short description.

    Args:
        parser: the parser of the program.
        words: the words after the program's name; the last one may be empty or incomplete.

    The result may contain `FILES` and `DIRECTORIES`.
    """
    before, last = words[:-1], words[-1] if words else ""
    cursor = _Cursor(parser)
    for word in before:
        cursor.pass_by(word)
    flag, equals, value = last.partition("=")
    if equals and (action := cursor.flags().get(flag)) is not None:
        return [(f"{flag}={one}", about) for one, about in _values(action) if one.startswith(value)]
    found = _flags(cursor) if last.startswith("-") and cursor.wanting is None else cursor.values()
    return [(one, about) for one, about in found if one.startswith((last, ":"))]


class _Cursor:
    """Follows the words before the cursor through the parser and its subparsers."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser
        self._positionals = self._listed()
        self.wanting: argparse.Action | None = None
        """The flag whose value comes next."""

    def pass_by(self, word: str) -> None:
        """Process a word before the cursor."""
        if self.wanting is not None:
            self.wanting = None
        elif word.startswith("-") and word != "-":
            action = self.flags().get(word)
            self.wanting = action if action is not None and _takes_value(action) else None
        elif self._positionals:
            self._enter(self._positionals[0], word)

    def values(self) -> Found:
        """Return candidates for the next positional or flag value."""
        if self.wanting is not None:
            yield from _values(self.wanting)
        elif self._positionals:
            yield from _values(self._positionals[0])

    def flags(self) -> dict[str, argparse.Action]:
        """Return the flags of the current parser by name."""
        return {name: action for action in parser_tree.arguments(self._parser) for name in action.option_strings}

    def _enter(self, positional: argparse.Action, word: str) -> None:
        chosen = parser_tree.subcommands(positional).get(word)
        if chosen is not None:
            self._parser = chosen
            self._positionals = self._listed()
        elif positional.nargs not in {"*", "+", argparse.REMAINDER}:
            self._positionals = self._positionals[1:]

    def _listed(self) -> list[argparse.Action]:
        return [action for action in parser_tree.arguments(self._parser) if not action.option_strings]


def _flags(cursor: _Cursor) -> Found:
    for name, action in cursor.flags().items():
        if name.startswith("--") or len(action.option_strings) == 1:
            yield name, _about(action)


def _values(action: argparse.Action) -> Found:
    if commands := parser_tree.subcommands(action):
        helps = parser_tree.summaries(action)
        yield from ((name, helps[name]) for name in commands if name in helps)
    elif action.choices is not None:
        yield from ((str(choice), "") for choice in action.choices)
    else:
        yield from _KINDS.get(action.metavar if isinstance(action.metavar, str) else action.dest, _nothing)()


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _about(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%") if action.help != argparse.SUPPRESS else ""


# --- values -----------------------------------------------------------------------------------------------------


def _nothing() -> Found:
    yield from ()


def _audited() -> Found:
    yield from ((name, "") for name in AUDITED)


def _accounts() -> Found:
    entries = _asked("audit.list", "entries", role="admin", limit=ENTRIES)
    yield from ((name, "") for name in sorted({text(one, "who") for one in entries}))


def _files() -> Found:
    yield FILES, ""


def _directories() -> Found:
    yield DIRECTORIES, ""


def _sessions() -> Found:
    for one in _asked("session.list", "sessions", limit=SESSIONS):
        yield text(one, "id"), f"{text(one, 'state')}  {text(one, 'name')}  {text(one, 'cwd')}"


def _models() -> Found:
    for one in _asked("get_models", "models", current=True):
        yield text(one, "id"), text(one, "provider")


def _full_models() -> Found:
    for one in _asked("get_models", "models", all=True, current=True):
        if one.get("ready") is not False:
            yield f"{text(one, 'provider')}/{text(one, 'id')}", ""


def _approvals() -> Found:
    for one in _asked("approval.list", "approvals"):
        yield text(one, "approval"), " ".join(asking.shown(one).split())[:ABOUT_CHARS]


def _providers() -> Found:
    yield from PROVIDERS.items()
    for one in _asked("auth.list", "providers"):  # from the user's models.json
        if text(one, "provider") not in PROVIDERS:
            yield text(one, "provider"), text(one, "title")


def _timers() -> Found:
    for one in _asked("timer.list", "timers"):
        yield text(one, "id"), f"{text(one, 'rule')}  {' '.join(text(one, 'message').split())[:ABOUT_CHARS]}"


def _batches() -> Found:
    for one in _asked("batch.list", "batches", limit=BATCHES):
        yield (
            text(one, "id"),
            f"{text(one, 'waiting')} waiting  {text(one, 'running')} running  {text(one, 'ended')} ended",
        )


def _labels() -> Found:
    daemons = _asked("fleet.list", "daemons")
    yield from ((label, "") for label in sorted({label for one in daemons for label in strings(one, "labels")}))


def _worktrees() -> Found:
    from zotctl.worktree.repository import Worktrees  # noqa: PLC0415  (runs git, only for this kind)

    try:
        for name in Worktrees(os.getcwd(), os.environ).names():
            yield name, ""
    except ClientError:  # not in a repository
        return


def _extensions() -> Found:
    """Extensions known to the daemon, and those with a log or a directory here, which need no daemon."""
    states = {text(one, "name"): text(one, "state") for one in _asked("ext.list", "extensions")}
    home = paths.zot_home(os.environ)
    logs = (
        name[4:-4] for name in _names(os.path.join(home, "logs")) if name.startswith("ext-") and name.endswith(".log")
    )
    installed = (
        name
        for folder in (os.path.join(home, "extensions"), os.path.join(".zot", "extensions"))
        for name in _names(folder)
        if os.path.isfile(os.path.join(folder, name, "extension.json"))
    )
    for name in sorted({*states, *logs, *installed}):
        yield name, states.get(name, "")


def _mcp_servers() -> Found:
    from zotctl.mcp import config_file  # noqa: PLC0415  (reads files, only for these names)

    for file in config_file.files():
        with suppress(ClientError):
            yield from ((name, file.path) for name in file.servers())


def _checkpoints() -> Found:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (20 ms, only for these numbers)

    with suppress(ClientError):
        yield from actions.numbers()


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _asked(command: str, field: str, /, *, role: str | None = None, **fields: object) -> list[Json]:
    """Return a list from the daemon; empty if none runs, it does not answer in time, or refuses the role."""
    where = place.of(os.environ)
    try:
        with Connection(where.open(REMOTE_S if where.is_remote else CONNECT_S)) as connection:
            limit_s = REMOTE_S if where.is_remote else ASK_S
            if role is not None:
                options.hello(connection, "zotctl", role=role, timeout_s=limit_s)
            return children(connection.call(command, fields, timeout_s=limit_s), field)
    except (ClientError, OSError):
        return []


_KINDS = {
    "APPROVAL": _approvals,
    "BATCH": _batches,
    "CHECKPOINT": _checkpoints,
    "COMMAND": _audited,
    "DIR": _directories,
    "EXTENSION": _extensions,
    "FILE": _files,
    "FILE|DIR": _files,
    "PATH": _files,
    "PATH|URL[@REF]": _files,
    "PROVIDER": _providers,
    "ID": _sessions,
    "LABEL": _labels,
    "MODEL": _full_models,
    "ID|NAME": _sessions,
    "MCP_SERVER": _mcp_servers,
    "SESSION": _sessions,
    "TIMER": _timers,
    "WHO": _accounts,
    "WORKTREE": _worktrees,
    "model": _models,
}
"""Completions by the metavar (or dest) of an argument."""
