"""Prompts of a batch, which any daemon of a fleet runs in a session of its own (`docs/batches.md`)."""

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from zotd.core import records
from zotd.wire.content import Text

ResultState = Literal["done", "failed", "unknown", "cancelled"]
"""How a prompt has ended. `unknown`: a crash has cut a call whose outcome is not known, so the prompt is not run again."""


class BatchPrompt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, and the session that is made for it."""

    message: str
    cwd: str
    """Directory of the session, on the machine of the daemon that runs it."""
    labels: tuple[str, ...] = ()
    """Only daemons that have all of these run it. Sorted, each once."""
    provider: str | None = None
    model: str | None = None
    mode: str | None = None
    limit_usd: float | None = None
    """Budget of the session, in USD."""
    limit_s: float | None = None
    """The run is aborted so many seconds after its session was made."""
    retries: int = 0
    """How often a prompt that has failed is run again, each time in a new session."""
    user: str = ""
    """The user whose the session is; empty: none."""


_PROMPT = msgspec.json.Decoder(BatchPrompt)


def is_same_prompt(one: str, other: str) -> bool:
    """Whether two stored prompts differ in nothing but who has submitted them."""
    if one == other:
        return True
    first, second = (msgspec.structs.replace(_PROMPT.decode(stored), user="") for stored in (one, other))
    return first == second


class PromptResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has come of a prompt."""

    state: ResultState
    text: str = ""
    """The last reply."""
    error: str = ""
    """Why it has failed, as a sentence."""
    session: str = ""
    """The session of the last attempt; empty: there was none."""
    attempts: int = 0
    cost_usd: float = 0.0
    """Of the last attempt, with its subagents."""
    took_s: float = 0.0
    """From the beginning of the last attempt to its end."""


class RunEnd(Struct, frozen=True):
    """How the last run of a session has ended."""

    text: str = ""
    error: str = ""
    """Why there is no complete reply; empty: there is one."""
    cut_call: str = ""
    """What is known of a call that a crash has cut; empty: none was."""


def run_end(recorded: Iterable[records.AnyRecord], before: RunEnd) -> RunEnd:
    """Return how a run has ended after these records, `before` them that much was known."""
    text, error, cut_call = before.text, before.error, before.cut_call
    for record in recorded:
        match record:
            case records.Attempt(covers=0, asked_by=""):
                error = cut_call = ""  # who goes on with it has been told of the call
            case records.Reply(content=content):
                text = "".join(block.text for block in content if isinstance(block, Text))
            case records.Note(level="error", text=why) | records.Note(text="aborted" as why):
                error = why
            case records.Interrupted(what="tool", text=what):
                cut_call = what
            case _:
                pass
    return RunEnd(text, error, cut_call)


def label_sets(known: Iterable[tuple[str, ...]], own: Collection[str]) -> list[tuple[str, ...]]:
    """Return those sets of labels of which a daemon has each."""
    return [labels for labels in known if set(labels) <= set(own)]
