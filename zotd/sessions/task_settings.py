"""The settings of a subagent: those of its parent, or less."""

from msgspec.structs import replace

from zotd.core.records import Settings
from zotd.core.subagents import NOTE, TaskOrder
from zotd.sessions.models import ModelChooser
from zotd.wire.errors import Code, CommandError


def child_settings(above: Settings, order: TaskOrder, models: ModelChooser, *, max_steps: int) -> Settings:
    """Return the settings of a subagent of a session with the settings `above`.

    Raises:
        CommandError: there is no such model or tool; the sentence says which.
    """
    steps = max_steps if above.max_steps is None else min(max_steps, above.max_steps)
    settings = replace(
        above,
        tools=_tools(above, order),
        max_steps=steps,
        append_system_prompt=[*above.append_system_prompt, NOTE],
        # What is left to the parent limits it.
        budget_usd=None,
        budget_tokens=None,
    )
    return _with_model(settings, order.model, models) if order.model else settings


def _tools(above: Settings, order: TaskOrder) -> list[str] | None:
    if order.tools is None:
        return above.tools
    missing = [name for name in order.tools if above.tools is not None and name not in above.tools]
    if missing:
        there = ", ".join(above.tools or ()) or "none"
        raise CommandError(
            Code.BAD_REQUEST, f"it cannot have the tool {missing[0][:80]}, which you do not have: {there}"
        )
    return list(dict.fromkeys(order.tools))


def _with_model(settings: Settings, model: str, models: ModelChooser) -> Settings:
    first, slash, rest = model.partition("/")
    if slash and rest and first in models.catalog.by_name:
        provider, name = first, rest
    else:
        provider, name = models.vendor_of(model) or settings.provider, model
    if (provider, name) == (settings.provider, settings.model):
        return settings
    is_elsewhere = provider == settings.provider and settings.base_url is not None
    if not is_elsewhere and not models.known(provider, name):
        raise CommandError(
            Code.BAD_REQUEST, f"there is no model {model[:100]}; leave `model` out to have the subagent use yours"
        )
    if provider == settings.provider:
        return replace(settings, model=name)
    # Address and key of the session are those of its vendor.
    return replace(settings, provider=provider, model=name, base_url=None, own_key=False)
