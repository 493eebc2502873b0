"""What the user adds to the catalog: the document `models.json`, and `[providers]` and `[[models]]` of `config.toml`."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from zotd.config import ModelEntry, ModelPrices, ProviderSection
from zotd.decodable import decodable
from zotd.providers.catalog.vendors import VENDORS
from zotd.providers.shared import Vendor
from zotd.wire.base import BadFrameError, Frozen, decode

_FIELDS = {"dialect": "api", "headers": "extra_headers", "context_window": "window"}
"""Fields of `ProviderSection` that have another name in `Vendor`."""

_LATE = frozenset({"base_url", "api", "login_url", "client_id"})
"""Fields that can be changed while the daemon runs, so they are looked up for each run."""


class Prices(Frozen, frozen=True):
    """USD for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    cache_write_hour: float | None = None
    """None: as much more than `cache_write` as Anthropic takes."""


class ModelRow(Frozen, frozen=True, kw_only=True):
    """A model as the user describes it; None: as the other layers say."""

    id: str
    provider: str
    context_window: int | None = None
    max_output: int | None = None
    reasoning: bool | None = None
    images: bool | None = None
    tools: bool | None = None
    few_shot: bool | None = None
    prices: Prices | None = None


class Overlay(Frozen, frozen=True):
    """Vendors and models of the user; the later ones win."""

    providers: tuple[Vendor, ...] = ()
    models: tuple[ModelRow, ...] = ()


def read(path: Path | None) -> tuple[Overlay, list[str]]:
    """Return the content of `models.json`, and why it is not in use, one sentence; a missing file is empty."""
    try:
        overlay = decode(path.read_bytes(), Overlay) if path is not None else Overlay()
    except FileNotFoundError:
        return Overlay(), []
    except (OSError, BadFrameError) as error:
        return Overlay(), [f"the models of {path} are not in use: {error}; correct the file and restart"]
    return overlay, []


def configured(
    base: Overlay, providers: Mapping[str, ProviderSection], models: Iterable[ModelEntry]
) -> tuple[Overlay, list[str]]:
    """Return `base` with the rows of `config.toml` behind it, and one sentence for each row that is left out.

    A section changes the fields that it sets of a known vendor, but for `_LATE`.
    """
    known = {name: vendor for vendor in (*VENDORS, *base.providers) for name in (vendor.name, *vendor.aliases)}
    added: dict[str, Vendor] = {}
    problems: list[str] = []
    for name, section in providers.items():
        fields = _set_fields(section)
        vendor = known.get(name)
        if vendor is None and section.base_url is None:
            problems.append(f"config.toml: the vendor {name} is not known and has no base_url, so it is left out")
        elif vendor is None:
            row = {"name": name, "base_url": section.base_url, "any_model": True, **fields}
            added[name] = msgspec.convert(row, decodable(Vendor))
        elif fields:
            headers = {**vendor.extra_headers, **(section.headers or {})}
            added[vendor.name] = msgspec.structs.replace(vendor, **fields | {"extra_headers": headers})
    names = {*known, *added}
    rows = []
    for entry in models:
        if entry.provider in names:
            rows.append(_row(entry))
        else:
            problems.append(
                f"config.toml: the model {entry.id} has the unknown provider {entry.provider}; it is left out"
            )
    return Overlay((*base.providers, *added.values()), (*base.models, *rows)), problems


def _set_fields(section: ProviderSection) -> dict[str, object]:
    given = {name: value for name, value in msgspec.structs.asdict(section).items() if value is not None}
    return {_FIELDS.get(name, name): value for name, value in given.items() if name not in _LATE}


def _row(entry: ModelEntry) -> ModelRow:
    fields = msgspec.structs.asdict(entry)
    prices = fields.pop("prices")
    return ModelRow(prices=_prices(prices) if prices is not None else None, **fields)


def _prices(prices: ModelPrices) -> Prices:
    read, write, for_an_hour = prices.cache_read, prices.cache_write, prices.cache_write_hour
    if write is None and for_an_hour is None:
        for_an_hour = prices.input
    return Prices(
        prices.input,
        prices.output,
        prices.input if read is None else read,
        prices.input if write is None else write,
        for_an_hour,
    )
