"""The settings of sessions whose turns another agent runs, and what such a session does not have."""

from collections.abc import Mapping

from zotd.core import records
from zotd.wire.api import SessionCreate
from zotd.wire.errors import Code, CommandError

PROVIDER = "acp"
"""The `provider` of such sessions; `model` is the name of the adapter."""

OURS = {
    "provider": "a model",
    "model": "a model",
    "base_url": "a base URL",
    "reasoning": "a reasoning effort",
    "system_prompt": "a system prompt",
    "append_system_prompt": "a system prompt",
    "tools": "a list of tools",
    "no_tools": "a list of tools",
    "fallback": "a fallback",
    "planning": "planning",
}
"""Settings that only mean something to our own runs, and what they are called."""


def check_own(settings: records.Settings, what: str) -> None:
    """Raise CommandError if another agent runs the session: it has no `what`."""
    if settings.agent:
        raise CommandError(
            Code.BAD_REQUEST,
            f"{settings.agent} runs the turns of this session, so zot has no {what} here; ask it yourself",
        )


def check_wishes(settings: records.Settings, wishes: object) -> None:
    """Raise CommandError if `wishes`, the parameters of a command, have a setting that means nothing to the agent of the session."""
    for field, what in OURS.items() if settings.agent else ():
        if getattr(wishes, field, None) is not None:
            check_own(settings, f"setting for {what}")


def check_changes(before: records.Settings, after: records.Settings) -> None:
    """Raise CommandError if a setting has changed that means nothing to the agent which runs the session."""
    if not before.agent:
        return
    for field, what in OURS.items():
        if getattr(before, field) != getattr(after, field):
            check_own(before, f"setting for {what}")


def agent_settings(params: SessionCreate, mode: str, *, known: Mapping[str, object]) -> records.Settings:
    """Return the settings of a new session that the agent `params.agent` runs.

    Raises CommandError for an unknown agent, and for settings that would mean nothing to it.
    """
    name = params.agent or ""
    if name not in known:
        raise CommandError(Code.BAD_REQUEST, f'there is no adapter "{name}"; there are {", ".join(known)}')
    for field, what in OURS.items():
        if getattr(params, field, None):
            raise CommandError(Code.BAD_REQUEST, f"{name} runs the turns of this session; leave out {what}")
    return records.Settings(
        provider=PROVIDER,
        model=name,
        agent=name,
        mode=mode,
        max_steps=params.max_steps,
        extensions=params.extensions,
        no_ext=params.no_ext,
        budget_usd=params.budget_usd,
        budget_tokens=params.budget_tokens,
        fallback=[],
    )
