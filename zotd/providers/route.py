"""What is looked up once for a choice of a model, and kept for all of its runs."""

from typing import NamedTuple

from zotd.core.budget import FlatPrices, Rates
from zotd.providers.choice import ModelChoice
from zotd.providers.narrowing import Lack
from zotd.providers.shared import Destination, Vendor
from zotd.wire.api import ModelInfo


class ModelFacts(NamedTuple):
    """What the catalog knows of a model; that does not change while the process lives."""

    info: ModelInfo
    rates: Rates | None
    prices: FlatPrices | None
    """None: each request has to be looked up (`Catalog.price`)."""


class Route(NamedTuple):
    """A choice that was checked."""

    vendor: Vendor
    """With the API in which this model is asked."""
    choice: ModelChoice
    """With a URL and a key, or for the local server, which brings its own."""
    destination: Destination | None
    """None: known when a request is made, because the local server or a login says it."""
    has_own_window: bool
    """The user's server decides how large the context window is (`ServerWindows`)."""
    refused: dict[Lack, str]
    """What the vendor has refused because of the model, with its words; grows."""
