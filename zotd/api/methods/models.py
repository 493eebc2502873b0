"""Commands about a single model: what is known of it, and what works with it."""

import asyncio
from collections.abc import Mapping

from msgspec import structs

from zotd.api.dispatch import Invocation
from zotd.core.records import Settings
from zotd.sessions.credentials import key_info
from zotd.sessions.model_probes import PROBES, probe
from zotd.sessions.models import ModelChooser
from zotd.wire import api
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

MAX_VARIABLES = 256
"""Most variables that a client can send: those that vendors use are a few dozen."""


async def show(call: Invocation, params: api.ModelQuery) -> api.ModelDetails:
    """Describe a model, and whether a run could use it."""
    models, environment = call.manager.models, _environment(call, params.env)
    provider, model = models.choose(params.provider, params.model or None, environment)
    return await asyncio.to_thread(_details, models, provider, model, environment)


async def check(call: Invocation, params: api.CheckModel) -> api.ModelProbe:
    """Send a small request that shows whether one thing works. It costs money that no session accounts for."""
    if params.probe not in PROBES:
        raise CommandError(Code.BAD_REQUEST, f'there is no probe "{params.probe[:80]}"; use one of {", ".join(PROBES)}')
    models, environment = call.manager.models, _environment(call, params.env)
    provider, model = models.choose(params.provider, params.model or None, environment)
    settings = Settings(provider=provider, model=model)
    call.manager.planner.check(settings, environment, None)  # a key, and the budget of the day
    return await probe(params.probe, await models.open(settings, environment), models.catalog.assumed(provider, model))


def _environment(call: Invocation, env: Mapping[str, str] | None) -> Environment:
    """The client's variables in front of the daemon's own."""
    if env is not None and len(env) > MAX_VARIABLES:
        raise CommandError(
            Code.BAD_REQUEST, f"env has more than {MAX_VARIABLES} variables; send those that vendors use"
        )
    own = call.manager.environment(None, None)
    if not env:
        return own
    sent = call.manager.environment(env, None)
    return Environment({**own.variables, **sent.variables}, {**own.keys, **sent.keys})


def _details(models: ModelChooser, provider: str, model: str, environment: Environment) -> api.ModelDetails:
    catalog = models.catalog
    vendor = catalog.by_name[provider]
    place = models.places.place(vendor, environment)
    key = key_info(models, provider, environment)
    listed = next((info for info in catalog.models(provider) if info.id == model), None)
    info = listed or catalog.assumed(provider, model)
    prices = catalog.prices(provider, model)
    return api.ModelDetails(
        structs.replace(
            info, ready=place.missing is None and (key.source is not None or not (vendor.key_env or key.methods))
        ),
        vendor.title,
        vendor.api,
        place.base_url,
        None if prices is None else api.TokenPrices(prices.input, prices.output, prices.cache_read, prices.cache_write),
        key,
        place.missing or "",
        known=listed is not None or catalog.find(provider, model) is not None,
    )
