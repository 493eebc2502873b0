"""Which calls a person may allow in addition to the pending one. Decided only here; clients display the result.

    same     only this command, only this file                        session, always
    prefix   commands that begin with the same words: `npm test *`    session; always for one simple command
    edits    every edit and write in the workspace                    session

A choice is offered only if it covers the pending call (`docs/decisions/0050-choices.md`).
"""

import re
from collections.abc import Mapping, Sequence

from zotd.core import permissions, shell
from zotd.core.permissions import SHELL, Action, PermissionQuery, PermissionRule
from zotd.core.shell_words import Word
from zotd.wire.base import Frozen

SAME, PREFIX, EDITS = "same", "prefix", "edits"
"""Ids of the choices."""

SESSION, ALWAYS = "session", "always"
"""How long a choice holds: until the session ends, or for all sessions (written into `config.toml`)."""

EDITING = ("edit", "write")
"""Built-in tools that change a file; the choice `edits` covers them."""

PARTS_MAX = 8
"""Longest command line, in simple commands, for which prefixes are offered; longer lists are not read before they are
approved."""

_NEVER = shell.SHELLS | frozenset(shell.WRAPPERS) | shell.RESERVED | frozenset(
    (
        *("awk", "gawk", "mawk", "sed", "ed", "ex", "vi", "vim", "nvim", "emacs", "expect", "gdb", "less", "more", "man"),
        *("rm", "rmdir", "shred", "dd", "mkfs", "truncate", "kill", "killall", "pkill", "chmod", "chown"),
        *("eval", "source", ".", "trap", "alias", "enable", "hash", "set", "shopt", "read", "printf", "mapfile", "fc"),
        *("bind", "complete", "let", "unalias", "popd", "find", "fd", "fdfind", "rsync", "scp", "sftp", "tar"),
    )
)  # fmt: skip
"""Programs without a prefix choice: they run their arguments, change how later commands are read, or destroy data."""

_INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|Rscript|tclsh|osascript|java|pwsh)[\d.]*"
)
"""Programs whose options may hold code. `python -m pytest *` gets a prefix that names the module; every other call of
them can only be allowed as it is."""

_RUNNERS: Mapping[tuple[str, ...], int] = {
    ("npx",): 1,
    ("uvx",): 1,
    ("bunx",): 1,
    ("npm", "exec"): 2,
    ("pnpm", "exec"): 2,
    ("pnpm", "dlx"): 2,
    ("yarn", "dlx"): 2,
    ("yarn", "exec"): 2,
    ("uv", "run"): 2,
    ("poetry", "run"): 2,
    ("pipenv", "run"): 2,
    ("pdm", "run"): 2,
    ("hatch", "run"): 2,
    ("rye", "run"): 2,
    ("pipx", "run"): 2,
    ("bundle", "exec"): 2,
}
"""Commands that run the command after them, and how many words they have."""

_FAMILIES = frozenset(
    (
        *("git", "npm", "pnpm", "yarn", "cargo", "go", "docker", "podman", "kubectl", "helm", "gh", "glab", "uv", "poetry"),
        *("pip", "pip3", "pipx", "pipenv", "pdm", "hatch", "rye", "apt", "apt-get", "brew", "systemctl", "terraform"),
        *("aws", "gcloud", "az", "bundle", "rails", "mix", "dotnet", "gradle", "mvn", "make", "just", "task"),
    )
)  # fmt: skip
"""Programs with subcommands: the prefix includes the subcommand; without one, no prefix is offered."""

_DEEP = frozenset({"run", "exec", "tool", "compose", "stash", "remote", "worktree", "submodule", "run-script"})
"""Subcommands that have subcommands themselves, so the prefix takes one more word."""

_FLAT = frozenset(
    ("cat", "diff", "du", "echo", "file", "grep", "head", "ls", "pytest", "rg", "stat", "tail", "tree", "wc", "which")
)
"""Programs without subcommands: their prefix is the name alone."""

_PLACES = frozenset({"cd", "pushd"})
"""They decide where the following commands run, so they are allowed with these very arguments only."""

_PLAIN = re.compile(r"[A-Za-z][\w:-]*")


class Choice(Frozen, frozen=True):
    """A rule, or several, that can be allowed together with the pending call."""

    id: str
    """`same`, `prefix` or `edits`."""
    text: str
    """What it covers, for display: a glob or a few words."""
    rules: tuple[PermissionRule, ...]
    scopes: tuple[str, ...] = (SESSION,)


def choices_for(question: PermissionQuery, *, cwd: str, home: str | None) -> tuple[Choice, ...]:
    """Return what can be allowed in addition to this call; empty if it can only be allowed once.

    Args:
        question: the pending call.
        cwd: the session's working directory.
        home: the user's home. A workspace that contains it gets no `edits` choice: it would cover every file of the
            user.
    """
    found = (_same(question), _prefix(question), _edits(question, cwd, home))
    return tuple(choice for choice in found if choice is not None)


def _same(question: PermissionQuery) -> Choice | None:
    rule = permissions.rule_for(question)
    if rule is None:
        return None
    text = "only this command" if _is_shell(question) else "only this file" if question.paths else "only this call"
    if question.extension is not None:
        text = f"every call of {question.tool}"
    return Choice(SAME, text, (rule,), (SESSION, ALWAYS))


def _prefix(question: PermissionQuery) -> Choice | None:
    command = question.args.get("command")
    parts = shell.parts(command) if _is_shell(question) and isinstance(command, str) else ()
    if not 0 < len(parts) <= PARTS_MAX:
        return None
    matches = list(dict.fromkeys(_match(part) for part in parts))
    rules = tuple(PermissionRule(SHELL, Action.ALLOW, match) for match in matches if match)
    # If one command of the line gets no prefix, the line would need an approval again, whatever the others get.
    if len(rules) < len(matches) or not permissions.covers(rules, question):
        return None
    # The prefixes are the commands themselves, which the choice `same` already offers.
    if all(rule == permissions.rule_for(question) for rule in rules):
        return None
    # A configured allow never matches a compound command (`permissions.covers` splits only for the session).
    scopes = (SESSION, ALWAYS) if len(parts) == 1 else (SESSION,)
    return Choice(PREFIX, ", ".join(rule.match for rule in rules), rules, scopes)


def _edits(question: PermissionQuery, cwd: str, home: str | None) -> Choice | None:
    if question.tool not in EDITING or question.extension is not None or not cwd.startswith("/"):
        return None
    if cwd == "/" or (home and f"{home}/".startswith(f"{cwd}/")):
        return None
    rules = tuple(PermissionRule(tool, Action.ALLOW, f"{permissions.literally(cwd)}/*") for tool in EDITING)
    return Choice(EDITS, f"every edit and write in {cwd}", rules) if permissions.covers(rules, question) else None


def _is_shell(question: PermissionQuery) -> bool:
    return question.tool == SHELL and question.extension is None


def _match(part: str) -> str | None:
    """Glob for the prefix of a simple command; None if it gets none."""
    words = shell.parsed(part).only
    if not words:
        return None
    if words[0].text in _PLACES:
        return permissions.literally(part)
    count = _prefix_words(words)
    if count == 0 or not all(word.is_fixed for word in words[:count]):
        return None
    return f"{permissions.literally(' '.join(word.text for word in words[:count]))} *"


def _prefix_words(words: Sequence[Word]) -> int:
    """Number of words in the prefix of a command; 0 if it gets none."""
    # Without the directory, because `/usr/bin/git` has the subcommands of `git`.
    name, texts = words[0].text.rpartition("/")[2], [word.text for word in words]
    if name in _NEVER:
        return 0
    for start, skipped in _RUNNERS.items():
        if tuple(texts[: len(start)]) == start:
            inner = _prefix_words(words[skipped:]) if texts[skipped:] and texts[skipped][:1] != "-" else 0
            # Look through the runner: `npx rm` is as dangerous as `rm`. An option after it may change what is run.
            return skipped + inner if inner else 0
    if _INTERPRETERS.fullmatch(name):
        return 3 if texts[1:2] == ["-m"] and len(texts) > 2 and not texts[2].startswith("-") else 0
    plain = len(_leading(texts[1:]))
    if name in _FAMILIES:
        wanted = 2 if texts[1:2] and texts[1] in _DEEP else 1
        return 1 + wanted if plain >= wanted else 0
    return 1 if name in _FLAT else 1 + min(plain, 1)


def _leading(texts: Sequence[str]) -> Sequence[str]:
    """The words before the first option or path."""
    ends = (at for at, text in enumerate(texts) if not _PLAIN.fullmatch(text))
    return texts[: next(ends, len(texts))]


def of_rule(rule: PermissionRule) -> Choice:
    """Choice `same` for an approval that was recorded before there were other choices."""
    return Choice(SAME, "only this call", (rule,), (SESSION, ALWAYS))


def as_toml(choice: Choice) -> str:
    """Return the choice's rules in the form in which they are written into a configuration file."""
    return "\n".join(map(permissions.toml, choice.rules))
