"""Which search engine a session uses."""

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
    model = config.web.search_model or ("" if vendor is None else vendor.default_model)
    return SearchEngine(chosen, config.web.search_url or "", key, model)
