"""Whether the prompt of a run is accepted, and what guards have the model read beside it."""

from dataclasses import replace

from zotd.contributions.view import Extensions
from zotd.core import records
from zotd.core.allowed_tools import note_of
from zotd.exthost.guards import GuardVerdict
from zotd.wire.content import Text
from zotd.wire.errors import Code, CommandError


async def admitted_prompt(extensions: Extensions | None, first: records.Input | None, mode: str) -> GuardVerdict[str]:
    """Return what guards have the model read beside the input `first`, in a session of this mode; None has no prompt.

    Raises:
        CommandError: a guard refuses the prompt.
    """
    if first is None:
        return GuardVerdict("")
    note = "" if first.allowed_tools is None else note_of(first.allowed_tools)
    if extensions is None:
        return GuardVerdict(note)
    prompt = "".join(block.text for block in first.content if isinstance(block, Text))
    verdict = await extensions.admit(prompt, mode)
    if verdict.is_blocked:
        raise CommandError(Code.BLOCKED, f"{verdict.by} refuses the prompt: {verdict.reason}")
    return replace(verdict, value="\n\n".join(filter(None, (verdict.value, note))))
