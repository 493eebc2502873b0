"""Commands that return files to an earlier state: undo and redo of what runs have changed."""

from dataclasses import dataclass
from typing import Self

from zotd.wire import api
from zottui.commands.command import Command, UsageError, of
from zottui.ui_context import UiContext

FILES = "--files"

POLICIES = {"--keep": "keep", "--force": "overwrite"}
"""What happens to files that the user has changed since, by flag; without one the daemon refuses and names them."""


@dataclass(frozen=True, slots=True)
class FileFlags:
    """What was typed behind a command that may restore files."""

    rest: str
    """What is no flag."""
    with_files: bool
    when_changed: str

    @classmethod
    def parsed(cls, args: str) -> Self:
        """Read the arguments of a command; raises UsageError for an unknown flag, or two that contradict."""
        words = args.split()
        flags = {word for word in words if word.startswith("-")}
        unknown = flags - {FILES, *POLICIES}
        if unknown:
            raise UsageError(f"unknown: {min(unknown)}; there are {FILES}, {', '.join(POLICIES)}")
        policies = [POLICIES[flag] for flag in POLICIES if flag in flags]
        if len(policies) > 1:
            raise UsageError(f"choose one of {' and '.join(POLICIES)}")
        rest = " ".join(word for word in words if word not in flags)
        return cls(rest, FILES in flags, policies[0] if policies else "refuse")


async def undo(ui: UiContext, args: str) -> None:
    """Take back what the last run has changed in files. An event shows what was restored."""
    params = api.Undo(session=of(ui), when_changed=_policy(args, "/undo"))
    await ui.ask(params, api.FilesRestored, timeout_s=None)


async def redo(ui: UiContext, args: str) -> None:
    """Make the changes again that the last undo has taken back. An event shows what was restored."""
    params = api.Redo(session=of(ui), when_changed=_policy(args, "/redo"))
    await ui.ask(params, api.FilesRestored, timeout_s=None)


def _policy(args: str, name: str) -> str:
    flags = FileFlags.parsed(args)
    if flags.rest or flags.with_files:
        raise UsageError(f"{name} takes back a whole run; its only arguments are {' and '.join(POLICIES)}")
    return flags.when_changed


COMMANDS = (
    Command("undo", "take back what the last run changed in files", undo, "[--keep|--force]"),
    Command("redo", "make the changes again that /undo took back", redo, "[--keep|--force]"),
)
