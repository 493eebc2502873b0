"""Permanent permission rules (scope `always`), appended to `$ZOT_HOME/config.toml`.

The file belongs to the user: comments and order are kept. The new text is parsed before it is written, and must yield
the previous settings plus the rule. All functions block for file operations: use a thread.
"""

import os
from pathlib import Path

from zotd import config, private_file
from zotd.core import permissions
from zotd.core.permissions import PermissionRule


class NotSavedError(Exception):
    """The rule cannot be written; the message is one sentence for the user."""


def check(path: Path, rule: PermissionRule) -> None:
    """Raise NotSavedError if `append` would fail, as far as that can be checked without writing."""
    _with_rule(path, rule)


def append(path: Path, rule: PermissionRule) -> None:
    """Append the rule to the file unless it is there already; a missing file is created with mode 0600.

    Raises:
        NotSavedError: the file cannot be read or written, is no valid configuration, or the rule cannot be appended.
    """
    try:
        with private_file.locked(path):
            text = _with_rule(path, rule)
            if text is not None:
                # Follow links: a configuration file is often a link into a repository of dotfiles.
                private_file.write(Path(os.path.realpath(path)), text.encode())
    except OSError as error:
        raise NotSavedError(f"{path} cannot be written: {error.strerror}") from error


def _with_rule(path: Path, rule: PermissionRule) -> str | None:
    """Return the text of the file with the rule appended; None if the rule is there already."""
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
    # Text at the end of a TOML file may fall into an unfinished table or change what precedes it; compare the results.
    if new.values != {**old.values, "rules": (*old.config.rules, wanted)} or new.warnings != old.warnings:
        raise NotSavedError(f"the rule cannot be appended to {path}; add it by hand")
    return after


def _gap(before: str) -> str:
    """Return the newlines that leave one empty line before the rule."""
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
