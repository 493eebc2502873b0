"""The settings of a subagent: those of its parent, or less."""

from msgspec.structs import replace

from zotd.core.allowed_tools import names_in
from zotd.core.permissions import narrowest
from zotd.core.records import Settings
from zotd.core.subagents import NOTE, TaskOrder
from zotd.sessions.models import ModelChooser
from zotd.wire.errors import Code, CommandError
from zotd.workspace.agent_files import AgentType


def child_settings(
    above: Settings, order: TaskOrder, kind: AgentType | None, models: ModelChooser, *, max_steps: int
) -> Settings:
    """Return the settings of a subagent of this type, of a session with the settings `above`.

    Raises:
        CommandError: there is no such model or tool; the sentence says which.
    """
    steps = [max_steps, above.max_steps, None if kind is None else kind.max_steps]
    settings = replace(
        above,
        tools=_tools(above, order, kind),
        mode=narrowest(above.mode, kind.mode) if kind is not None and kind.mode else above.mode,
        planning="",
        max_steps=min(one for one in steps if one is not None),
        append_system_prompt=[
            *above.append_system_prompt,
            NOTE,
            *([kind.instructions] if kind is not None and kind.instructions else ()),
        ],
        # What is left to the parent limits it.
        budget_usd=None,
        budget_tokens=None,
    )
    model = order.model or ("" if kind is None else kind.model)
    return _with_model(settings, model, models) if model else settings


def _tools(above: Settings, order: TaskOrder, kind: AgentType | None) -> list[str] | None:
    found = above.tools
    if kind is not None and kind.tools is not None and (names := names_in(kind.tools)) is not None:
        found = names if found is None else [name for name in names if name in found]
    if order.tools is None:
        return found
    missing = [name for name in order.tools if found is not None and name not in found]
    if missing:
        there = ", ".join(found or ()) or "none"
        raise CommandError(Code.BAD_REQUEST, f"it cannot have the tool {missing[0][:80]}; there are: {there}")
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
