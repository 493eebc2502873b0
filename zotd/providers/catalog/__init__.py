"""Vendors and models: what there is, what it can do, what it costs. Data only; nothing here uses the network.

Four layers, later ones win: the rows of `vendors`, the data of `genai-prices` with `figures`, the user's
`$ZOT_HOME/models.json`, and `[providers]` and `[[models]]` of `config.toml`. The third is older and stays:

    {"providers": [{"name": "acme", "base_url": "https://llm.acme.example/v1", "key_env": ["ACME_KEY"],
                    "api": "openai", "default_model": "acme-1", …any other field of `Vendor`}],
     "models":    [{"id": "acme-1", "provider": "acme", "context_window": 128000, "max_output": 8192,
                    "reasoning": false, "prices": {"input": 1.0, "output": 4.0, "cache_read": 0.1, "cache_write": 1.25}}]}

Prices are USD for a million tokens. What a model's row leaves out comes from the other layers.
"""

import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from zotd.config import Config
from zotd.core.budget import MILLION, FlatPrices, Rates
from zotd.core.web_access import SEARCH_KEYS
from zotd.providers.catalog import overlay, prices
from zotd.providers.catalog.figures import chats, figures, needs_responses
from zotd.providers.catalog.lineage import newest_first, superseded
from zotd.providers.catalog.overlay import ModelRow, Overlay, Prices
from zotd.providers.catalog.vendors import VENDORS
from zotd.providers.shared import Vendor
from zotd.wire.api import ModelInfo
from zotd.wire.content import Tokens

LOCAL = "local"
"""The vendor whose server is a child of ours."""

SMOL = "smollm2-135m"
"""The local model that comes as a package; too small to call tools without examples."""

LOCAL_CONTEXT = 8192
"""Tokens that the local server is started with; more would cost memory for little."""

SAMPLE_TOKENS = 10_000
"""How many tokens are priced to find a rate; beyond 200,000 in one request some vendors have another one."""

log = logging.getLogger(__name__)


class Catalog:
    """All vendors and models. Its methods that look at models load `genai-prices` once: see `preload`."""

    def __init__(self, rows: Overlay, *, local_model: str | None = None, problem: str | None = None) -> None:
        """`local_model`: a GGUF file to use instead of the packaged model."""
        self.problem = problem
        """Which rows of the user are not in use, and why, as sentences; None if all are."""
        self._local_model = local_model or SMOL
        self._vendors = {vendor.name: vendor for vendor in (*VENDORS, *rows.providers)}
        names = {alias: vendor.name for vendor in self._vendors.values() for alias in vendor.aliases}
        self._aliases = {alias: name for alias, name in names.items() if alias not in self._vendors}
        self.by_name: Mapping[str, Vendor] = {
            **{alias: self._vendors[name] for alias, name in self._aliases.items()},
            **self._vendors,
        }
        """The vendors by name and by alias."""
        self._rows = {(self._name(row.provider), row.id): row for row in rows.models}
        self._rates: dict[tuple[str, str], Rates | None] = {}

    @classmethod
    def load(cls, models_json: Path | None, config: Config | None = None) -> "Catalog":
        """The catalog with the user's rows; bad ones are left out with a warning, a missing file is none."""
        found, problems = overlay.read(models_json)
        if config is not None:
            found, more = overlay.configured(found, config.providers, config.models)
            problems += more
        for problem in problems:
            log.warning("%s", problem)
        return cls(found, local_model=os.environ.get("ZOT_LOCAL_MODEL"), problem="; ".join(problems) or None)

    @staticmethod
    def preload() -> None:
        """Load what the methods below need; blocks for 0.2 s, meant for a thread."""
        prices.preload()

    def vendors(self) -> list[Vendor]:
        """All vendors, the user's last."""
        return list(self._vendors.values())

    def key_variables(self) -> frozenset[str]:
        """The environment variables that may hold the key of any vendor, or of a search engine."""
        of_vendors = (variable for vendor in self._vendors.values() for variable in vendor.key_env)
        return frozenset((*of_vendors, *SEARCH_KEYS.values()))

    def other_variables(self) -> frozenset[str]:
        """The environment variables that any vendor's requests depend on otherwise; tools see them."""
        return frozenset(variable for vendor in self._vendors.values() for variable in vendor.variables)

    def default_model(self, provider: str) -> str:
        """The model to use when none is named; empty if the vendor is unknown or has no default."""
        vendor = self.by_name.get(provider)
        if vendor is None:
            return ""
        return self._local_model if vendor.name == LOCAL else vendor.default_model

    def models(self, provider: str) -> list[ModelInfo]:
        """The vendor's models that are known to chat: its default, then the current ones, then those with a successor.

        Each part begins with the highest version numbers. Empty for an unknown vendor. Other models may exist: vendors
        add models faster than price lists do, and a local server has its own.
        """
        vendor = self.by_name.get(provider)
        if vendor is None:
            return []
        known = {id_: window for id_, window in _listed(vendor) if chats(id_)}
        first = self.default_model(vendor.name)
        rows = {id_: known.get(id_, 0) for name, id_ in self._rows if name == vendor.name}
        old = superseded(known) - {first, *rows}
        known |= rows
        if vendor.name == LOCAL:
            known |= {SMOL: LOCAL_CONTEXT, self._local_model: LOCAL_CONTEXT}
        ids = sorted(known, key=lambda id_: (id_ != first, id_ in old, newest_first(id_)))
        infos = [self._info(vendor, id_, known[id_]) for id_ in ids]
        return [msgspec.structs.replace(info, superseded=True) if info.id in old else info for info in infos]

    def find(self, provider: str, model: str) -> ModelInfo | None:
        """The model, also under a dated or otherwise longer id; None if it is unknown.

        A model that is not known may still exist: see `assumed`.
        """
        vendor = self.by_name.get(provider)
        if vendor is None or not model:
            return None
        if vendor.name == LOCAL:
            return self._info(vendor, model, LOCAL_CONTEXT)
        window = prices.context_window(vendor.prices, model) if vendor.prices else None
        if window is None and (vendor.name, model) not in self._rows:
            return None
        return self._info(vendor, model, window or 0)

    def assumed(self, provider: str, model: str) -> ModelInfo:
        """The model as `find` has it, or as its name lets expect."""
        max_output, reasoning = figures(model)
        found = self.find(provider, model)
        vendor = self.by_name.get(provider)
        window = vendor.window if vendor is not None else 0
        return found or ModelInfo(
            model, self._name(provider), window, max_output, reasoning, api=self.api_needed(provider, model)
        )

    def price(self, provider: str, model: str, tokens: Tokens) -> Tokens:
        """The same tokens with `cost_usd`; 0 when the price is unknown."""
        vendor = self.by_name.get(provider)
        row = self._rows.get((self._name(provider), model))
        if row is not None and row.prices is not None:
            cost = _cost(row.prices, tokens)
        elif vendor is not None and vendor.prices and not vendor.subscription:
            cost = prices.cost_usd(vendor.prices, model, tokens)
        else:
            cost = 0.0
        return msgspec.structs.replace(tokens, cost_usd=cost)

    def flat_prices(self, provider: str, model: str) -> FlatPrices | None:
        """What `price` computes with, if that is the same for all requests."""
        vendor, row = self.by_name.get(provider), self._rows.get((self._name(provider), model))
        if vendor is None or not vendor.prices or vendor.subscription or (row is not None and row.prices is not None):
            return None
        return prices.flat(vendor.prices, model)

    def rates(self, provider: str, model: str) -> Rates | None:
        """Approximate price of the model; None if unknown. A vendor that needs no key costs nothing."""
        key = (self._name(provider), model)
        if key not in self._rates:  # looking up two prices takes 0.4 ms
            read, written = (
                self.price(*key, Tokens(**{kind: SAMPLE_TOKENS})).cost_usd * MILLION / SAMPLE_TOKENS
                for kind in ("input", "output")
            )
            self._rates[key] = Rates(read, written) if read or written or self._is_free(*key) else None
        return self._rates[key]

    def api_needed(self, provider: str, model: str) -> str | None:
        """The only API in which the vendor serves the model; None: its usual one, `Vendor.api`. Loads nothing."""
        vendor = self.by_name.get(provider)
        return "responses" if vendor is not None and vendor.api == "responses" and needs_responses(model) else None

    def prices(self, provider: str, model: str) -> Prices | None:
        """Price of each kind of token, for a small request; None if unknown."""
        if self.rates(provider, model) is None:
            return None
        kinds = {kind: Tokens(**{kind: SAMPLE_TOKENS}) for kind in ("input", "output", "cache_read", "cache_write")}
        costs = {kind: self.price(provider, model, tokens).cost_usd for kind, tokens in kinds.items()}
        return Prices(**{kind: cost * MILLION / SAMPLE_TOKENS for kind, cost in costs.items()})

    def _is_free(self, provider: str, model: str) -> bool:
        vendor, row = self._vendors.get(provider), self._rows.get((provider, model))
        return (vendor is not None and vendor.is_free) or (row is not None and row.prices is not None)

    def _name(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _info(self, vendor: Vendor, model: str, window: int) -> ModelInfo:
        max_output, reasoning = figures(model)
        few_shot = vendor.name == LOCAL and model == SMOL
        row = self._rows.get((vendor.name, model)) or ModelRow(id=model, provider=vendor.name)
        return ModelInfo(
            model,
            vendor.name,
            (window or vendor.window) if row.context_window is None else row.context_window,
            max_output if row.max_output is None else row.max_output,
            reasoning if row.reasoning is None else row.reasoning,
            few_shot if row.few_shot is None else row.few_shot,
            api=self.api_needed(vendor.name, model),
            images=row.images,
            tools=row.tools,
        )


def _listed(vendor: Vendor) -> Iterable[tuple[str, int]]:
    if not vendor.prices:
        return ()
    if not vendor.listed:
        return prices.listed(vendor.prices)
    pattern = re.compile(vendor.listed)
    found = ((pattern.search(id_), window) for id_, window in prices.listed(vendor.prices))
    return ((match[1], window) for match, window in found if match)


def _cost(rates: Prices, tokens: Tokens) -> float:
    dollars = tokens.input * rates.input + tokens.output * rates.output
    dollars += tokens.cache_read * rates.cache_read + tokens.cache_write * rates.cache_write
    if tokens.cache_write_hour:
        for_an_hour = rates.cache_write_hour
        if for_an_hour is None:
            for_an_hour = rates.cache_write * float(prices.HOUR_TO_FIVE_MINUTES)
        dollars += tokens.cache_write_hour * (for_an_hour - rates.cache_write)
    return dollars / 1_000_000
