"""What a turn has changed in files: in a line, and as blocks to print."""

from zotd.client.humanize import counted
from zotd.wire import api
from zottui.blocks import Block, CodeLines, Rule
from zottui.ui_context import CommandSender
from zottui.viewer.turns import Numbers

SHOWN = 10
"""Most files that are named in a line."""

DIFF_S = 60.0
"""Longest time for a comparison, in a large directory."""


async def of_turn(ui: CommandSender, session: str, numbers: Numbers, seq: int) -> api.ChangedFiles | None:
    """Return what the turn of a message has changed; None before the first prompt. Raises `ClientError`."""
    number = numbers.of(seq)
    prompt = numbers.seq(number)
    if prompt is None:
        return None
    params = api.FileChanges(session=session, after=prompt, until=numbers.seq(number + 1))
    return await ui.ask(params, api.ChangedFiles, timeout_s=DIFF_S)


def summary(found: api.ChangedFiles) -> str:
    """Return the changed files in a line, with the number of lines that were added and removed."""
    named = ", ".join(_counted(one) for one in found.files[:SHOWN])
    more = f", and {found.total - SHOWN} more" if found.total > SHOWN else ""
    return f"{counted(found.total, 'file')} changed: {named}{more}"


def blocks(found: api.ChangedFiles) -> tuple[Block, ...]:
    """Return the patch under a line that names the files."""
    lines = tuple(found.patch.removesuffix("\n").split("\n"))
    more = ("… the patch is longer: `zotctl checkpoints diff --run` prints all of it",) if found.is_cut else ()
    return Rule(summary(found)), CodeLines("diff", (*lines, *more), opens=True, closes=True)


def _counted(one: api.ChangedFile) -> str:
    return one.path if one.added is None else f"{one.path} +{one.added} -{one.removed}"
