"""The data of the package `genai-prices`: models, context windows, prices. Never its update over the network.

Imported at first use: 0.15 s of CPU and 20 MB, most of it for one module of 1.6 MB with the data.
"""

import importlib
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

from zotd.core.budget import MILLION, FlatPrices
from zotd.wire.content import Tokens

HOUR_TO_FIVE_MINUTES = Decimal("1.6")
"""What it costs to write for an hour (2 x the input's price), in prices of a write for five minutes (1.25 x). Only vendors of
Anthropic's models sell both, at these prices; the data has the latter only."""

THOUSAND = 1_000
"""Requests that a price is for, where each of them costs something."""


ZERO = Decimal(0)


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


def flat(vendor: str, model: str) -> FlatPrices | None:
    """The model's prices, if they are the same at any time and for requests of any length; None if not, or unknown."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  (see the module)
    from genai_prices.types import ModelPrice  # noqa: PLC0415

    try:
        _, found = get_snapshot().find_provider_model(model, None, vendor, None)
    except LookupError:
        return None
    if not isinstance(found.prices, ModelPrice):
        return None  # they depend on the time
    rates = found.prices
    base = rates.input_mtok or ZERO
    every = (
        base,
        rates.output_mtok or ZERO,
        rates.cache_read_mtok or base,
        rates.cache_write_mtok or base,
        rates.requests_kcount or ZERO,
    )
    fixed = [price for price in every if isinstance(price, Decimal)]
    if len(fixed) < len(every):
        return None  # they depend on the length
    read, written, from_cache, to_cache, of_request = fixed
    for_an_hour = to_cache * HOUR_TO_FIVE_MINUTES
    return FlatPrices(read, written, from_cache, to_cache, for_an_hour, of_request * (MILLION // THOUSAND))


def cost_usd(vendor: str, model: str, tokens: Tokens) -> float:
    """Cost of a request with these tokens now, in USD; 0 if the price is unknown.

    But for writes for an hour, it is what `DataSnapshot.calc` of the package says, which takes 0.1 ms for it: as much as a twentieth of a step.
    """
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  (see the module)
    from genai_prices.types import calc_unit_price  # noqa: PLC0415

    try:
        _, found = get_snapshot().find_provider_model(model, None, vendor, None)
    except LookupError:
        return 0.0
    rates = found.get_prices(datetime.now(UTC))
    read, reads = rates.input_mtok, tokens.total - tokens.output
    parts = (
        (read, tokens.input, MILLION),
        (rates.cache_read_mtok or read, tokens.cache_read, MILLION),
        (rates.cache_write_mtok or read, tokens.cache_write, MILLION),
        (rates.output_mtok, tokens.output, MILLION),
        (rates.requests_kcount, 1, THOUSAND),
    )
    total = sum(calc_unit_price(rate, count, reads, per) for rate, count, per in parts)
    if tokens.cache_write_hour:
        written = calc_unit_price(rates.cache_write_mtok or read, tokens.cache_write_hour, reads, MILLION)
        total += written * (HOUR_TO_FIVE_MINUTES - 1)
    return float(total)
