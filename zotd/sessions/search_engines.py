"""Which search engine a session uses."""

from functools import partial

from zotd.config import Config
from zotd.core.web_access import SEARCH_KEYS, SearchEngine
from zotd.sessions.models import ModelChooser
from zotd.workspace.environment import Environment


def searches(config: Config, mode: str) -> bool:
    """Whether sessions in this mode have the tool `web_search`."""
    return config.web.search != "off" and (config.sandbox.network != "off" or mode == "yolo")


def engine_of(config: Config, environment: Environment, models: ModelChooser) -> SearchEngine | None:
    """Return what `[web]` of the configuration says, with its key; None: it says that nothing is searched.

    Args:
        config: as it is now.
        environment: of the client; its key counts first.
        models: knows the keys in the daemon's own environment, and the models of vendors.
    """
    chosen = config.web.search
    if chosen == "off":
        return None
    variable, vendor = SEARCH_KEYS.get(chosen, ""), models.catalog.by_name.get(chosen)
    key = environment.keys.get(variable) or models.keys.inherited.get(variable, "")
    url = config.web.search_url or ""
    if vendor is None:
        return SearchEngine(chosen, url, key)
    model = config.web.search_model or vendor.default_model
    rates, price = models.catalog.rates(chosen, model), partial(models.catalog.price, chosen, model)
    return SearchEngine(chosen, url, key, model, rates, price)
