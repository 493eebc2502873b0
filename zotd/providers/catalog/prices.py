"""The data of the package `genai-prices`: models, context windows, prices. Never its update over the network.

Imported at first use: 0.15 s of CPU and 20 MB, most of it for one module of 1.6 MB with the data.
"""

import importlib
from collections.abc import Iterator

from zotd.wire.content import Tokens


def preload() -> None:
    """Import the data; meant for a thread, so that the first use on the event loop finds it there."""
    importlib.import_module("genai_prices.data")


def listed(vendor: str) -> Iterator[tuple[str, int]]:
    """The vendor's models that are on sale: id and context window, 0 when unknown."""
    from genai_prices.data_snapshot import find_provider_by_id, get_snapshot  # noqa: PLC0415  (see the module)

    provider = find_provider_by_id(get_snapshot().providers, vendor)
    for model in provider.models if provider else ():
        if not model.deprecated:
            yield model.id, model.context_window or 0


def context_window(vendor: str, model: str) -> int | None:
    """The model's context window, 0 when unknown; None when the vendor has no such model, under no name."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  (see the module)

    try:
        _, found = get_snapshot().find_provider_model(model, None, vendor, None)
    except LookupError:
        return None
    return found.context_window or 0


def cost_usd(vendor: str, model: str, tokens: Tokens) -> float:
    """What the tokens cost now; 0 when nobody knows."""
    from genai_prices import Usage  # noqa: PLC0415  (see the module)
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    usage = Usage(
        input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    try:
        return float(get_snapshot().calc(usage, model, vendor, None, None).total_price)
    except (LookupError, ValueError):
        return 0.0
