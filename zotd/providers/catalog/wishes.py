"""What of a session's wishes a model does not fulfil, in a sentence for the user."""

from zotd.providers.catalog.figures import reasons_without_tools
from zotd.providers.shared import Vendor
from zotd.wire.api import ModelInfo


def unmet(vendor: Vendor, model: ModelInfo, reasoning: str, *, has_tools: bool) -> str | None:
    """Why `reasoning`, a level of ours, has no effect; None when it has one. `vendor.api` is the API in use."""
    if reasoning == "off":
        return None
    effect = f"so reasoning {reasoning} has no effect"
    if vendor.api == "ollama":
        return None  # the server says it of the installed model
    if not model.reasoning:
        return f"{model.id} is not known to reason, {effect}; if it does, models.json can say so"
    if vendor.api != "openai":
        return None
    if not vendor.reasoning_style:
        return f"{vendor.title} cannot be told how much {model.id} reasons, {effect}"
    if has_tools and vendor.reasoning_style == "effort" and reasons_without_tools(model.id):
        way_out = f'set providers.{vendor.name}.api = "responses" in config.toml'
        return f"{model.id} reasons in Chat Completions only without tools, {effect}; {way_out}"
    return None
