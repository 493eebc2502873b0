"""Commands about what runs have changed in files: show it, undo it, redo it."""

from dataclasses import dataclass
from typing import Self

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.ui_context import UiContext
from zottui.viewer.changes import DIFF_S, blocks
from zottui.viewer.turns import PromptEntry, prompts

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


async def diff(ui: UiContext, args: str) -> None:
    """Print what a run has changed in files: the last one, or that of a prompt with this number."""
    which = number(args, "the prompt whose changes are shown")
    after, until = (0, None) if which is None else _span(await prompts(ui, of(ui)), which)
    params = api.FileChanges(session=of(ui), after=after, until=until)
    found = await ui.ask(params, api.ChangedFiles, timeout_s=DIFF_S)
    ui.print(*blocks(found))


def _span(known: list[PromptEntry], which: int) -> tuple[int, int | None]:
    """Return the events between which the run of a prompt begins to change files."""
    if not 1 <= which <= len(known):
        raise UsageError(f"there are {len(known)} prompts; /diff N shows what prompt N has changed")
    return known[which - 1].seq, known[which].seq if which < len(known) else None


def _policy(args: str, name: str) -> str:
    flags = FileFlags.parsed(args)
    if flags.rest or flags.with_files:
        raise UsageError(f"{name} takes back a whole run; its only arguments are {' and '.join(POLICIES)}")
    return flags.when_changed


COMMANDS = (
    Command("diff", "show what a run has changed in files", diff, "[N]"),
    Command("undo", "take back what the last run changed in files", undo, "[--keep|--force]"),
    Command("redo", "make the changes again that /undo took back", redo, "[--keep|--force]"),
)
