"""Rules that people have decided on for good: written behind what stands in `$ZOT_HOME/config.toml`.

The file is the user's: comments and order stay, and nothing is written that would not be read back as that rule and
everything that was there before. Everything here blocks: use a thread.
"""

import os
from pathlib import Path

from zotd import config, private_file
from zotd.core import permissions
from zotd.core.permissions import PermissionRule


class NotSavedError(Exception):
    """The rule cannot be written; the message is one sentence for the person who decided."""


def check(path: Path, rule: PermissionRule) -> None:
    """Raise NotSavedError when `append` would, as far as that is known without writing."""
    _with_rule(path, rule)


def append(path: Path, rule: PermissionRule) -> None:
    """Add the rule to the file, which is made when it is missing (0600); does nothing when it is there already.

    Raises:
        NotSavedError: the file cannot be read or written, is no configuration, or could not hold the rule.
    """
    try:
        with private_file.locked(path):
            text = _with_rule(path, rule)
            if text is not None:
                # To where a link leads: a configuration that lives in a repository of dotfiles stays there.
                private_file.write(Path(os.path.realpath(path)), text.encode())
    except OSError as error:
        raise NotSavedError(f"{path} cannot be written: {error.strerror}") from error


def _with_rule(path: Path, rule: PermissionRule) -> str | None:
    """The text of the file with the rule; None: it has it."""
    before = _read(path)
    wanted = config.RuleEntry(tool=rule.tool, action=rule.action.value, match=rule.match)
    try:
        old = config.parse(before, path)
        if wanted in old.config.rules:
            return None
        after = f"{before}{_gap(before)}{permissions.toml(rule)}"
        new = config.parse(after, path)
    except (config.ConfigError, ValueError) as error:
        raise NotSavedError(f"the rule cannot be added: {error}; add it by hand") from error
    if new.values != {**old.values, "rules": (*old.config.rules, wanted)} or new.warnings != old.warnings:
        raise NotSavedError(f"the rule cannot be appended to {path}; add it by hand")
    return after


def _gap(before: str) -> str:
    """What ends the last line, and leaves one empty."""
    if not before:
        return ""
    return "\n" if before.endswith("\n") else "\n\n"


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()  # not `read_text`: that would change line ends
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NotSavedError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotSavedError(f"{path} is not UTF-8, which TOML requires: {error.reason}") from error
