"""Whether the prompt of a run is accepted, and what guards have the model read beside it."""

from collections.abc import Sequence
from typing import NamedTuple

from zotd.contributions.view import Extensions
from zotd.core import records
from zotd.core.allowed_tools import note_of
from zotd.wire.content import Text
from zotd.wire.errors import Code, CommandError


class AdmittedPrompt(NamedTuple):
    """What guards, and the tools that the prompt allows, add to it."""

    context: str
    """What the model reads beside the prompt; empty: nothing."""
    notes: Sequence[str]
    """Sentences of guards for people."""


NOTHING_ADDED = AdmittedPrompt("", ())


async def admitted_prompt(extensions: Extensions | None, first: records.Input, mode: str) -> AdmittedPrompt:
    """Return what guards have the model read beside the input `first`, in a session of this mode.

    Raises:
        CommandError: a guard refuses the prompt.
    """
    note = "" if first.allowed_tools is None else note_of(first.allowed_tools)
    if extensions is None:
        return AdmittedPrompt(note, ())
    prompt = "".join(block.text for block in first.content if isinstance(block, Text))
    verdict = await extensions.admit(prompt, mode)
    if verdict.is_blocked:
        raise CommandError(Code.BLOCKED, f"{verdict.by} refuses the prompt: {verdict.reason}")
    beside = "\n\n".join(filter(None, (verdict.value, note)))
    return AdmittedPrompt(beside, [remark.text for remark in verdict.notes])
