"""The models of runs: the session's own, and the fallbacks that its settings or the configuration name."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial

from msgspec import structs

from zotd.config.current import CurrentConfig
from zotd.contributions.toolbox import Toolbox
from zotd.core.outages import ModelOutages
from zotd.core.records import Settings
from zotd.core.retry import Failure, ModelError, RetryPolicy
from zotd.runs.model_ladder import ModelLadder, ModelSource, OnlyModel, OpenedModel, Rung
from zotd.sessions.models import ModelChooser
from zotd.sessions.unavailable import Unavailable
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment


class RunModels:
    """Puts together which models a run may ask; one for a process, because it remembers which of them have failed."""

    def __init__(self, models: ModelChooser, config: CurrentConfig) -> None:
        """`config`: the configuration that holds now."""
        self._models = models
        self._config = config
        self._outages = ModelOutages[Hashable]()

    def of(
        self,
        own: OpenedModel,
        settings: Settings,
        environment: Environment,
        *,
        patience: RetryPolicy,
        toolbox: Callable[[], Toolbox],
        told: set[str],
    ) -> ModelSource:
        """The models of a run whose settings or configuration name fallbacks; `own` is opened.

        `patience`: how long the run would retry the own one without fallbacks. `told`: see `Providers.connect`.
        """
        config, limits = self._config.value, self._config.value.limits
        rungs = [Rung(settings.label, self._key(settings, environment), partial(_opened, own))]
        for name in config.fallback if settings.fallback is None else settings.fallback:
            rung = self._rung(name, settings, environment, toolbox=toolbox, told=told)
            if all(rung.label != known.label for known in rungs):  # the own one may be among the configured
                rungs.append(rung)
        if len(rungs) == 1:
            return OnlyModel(own, patience)
        return ModelLadder(
            own,
            rungs,
            patience=patience,
            fallback_patience_s=limits.fallback_patience_s,
            first_rest_s=limits.fallback_rest_s,
            outages=self._outages,
            clock=asyncio.get_running_loop().time,
        )

    def _rung(
        self,
        name: str,
        settings: Settings,
        environment: Environment,
        *,
        toolbox: Callable[[], Toolbox],
        told: set[str],
    ) -> Rung:
        try:
            provider, model = named(name, settings, self._models)
        except CommandError as error:  # in the configuration; a session's own were checked when they were set
            return Rung(name, name, partial(_refuse, error.sentence))
        wanted, places = elsewhere(settings, environment, provider, model)
        return Rung(wanted.label, self._key(wanted, places), partial(self._open, wanted, places, toolbox, told=told))

    async def _open(
        self, settings: Settings, environment: Environment, toolbox: Callable[[], Toolbox], *, told: set[str]
    ) -> OpenedModel:
        try:
            self._models.check(settings, environment)
        except CommandError as error:
            raise ModelError(Failure.NO_KEY, error.sentence) from error
        opened = await self._models.open(settings, environment, told)
        if isinstance(opened, Unavailable):
            raise opened.error
        unmet = None if settings.reasoning == "off" else self._models.unmet(settings, has_tools=bool(toolbox().tools))
        return OpenedModel(settings.provider, settings.model, opened, () if unmet is None else (unmet,))

    def _key(self, settings: Settings, environment: Environment) -> Hashable:
        """What an outage is remembered by. Also the keys of the session: one that is refused says nothing of another."""
        address = settings.base_url or self._models.places.configured_url(settings.provider)
        account = hash((environment.api_key, frozenset(environment.keys.items())))
        return settings.provider, settings.model, address, account


async def _opened(own: OpenedModel) -> OpenedModel:
    return own


async def _refuse(sentence: str) -> OpenedModel:
    raise ModelError(Failure.UNAVAILABLE, sentence)


def elsewhere(settings: Settings, environment: Environment, provider: str, model: str) -> tuple[Settings, Environment]:
    """Return settings and environment for another model; another vendor does not get the URL or key of the old one."""
    if provider == settings.provider:
        return structs.replace(settings, model=model), environment
    moved = structs.replace(settings, provider=provider, model=model, base_url=None, own_key=False)
    return moved, environment.without_own_key()


def named(name: str, settings: Settings, models: ModelChooser) -> tuple[str, str]:
    """The vendor and the model of a fallback: `provider/model`, or a model that the catalog knows.

    Raises:
        CommandError: there is no such vendor or model.
    """
    first, slash, rest = name.partition("/")
    if slash and rest and first in models.catalog.by_name:
        provider, model = first, rest
    else:
        found = models.vendor_of(name)
        if found is None:
            sentence = f'the fallback "{name[:100]}" is no model that the catalog knows; write it as provider/model'
            raise CommandError(Code.BAD_REQUEST, sentence)
        provider, model = found, name
    url = settings.base_url if provider == settings.provider else None
    is_elsewhere = url is not None or models.places.configured_url(provider) is not None
    if not models.known(provider, model) and not is_elsewhere:
        sentence = f"unknown fallback {provider}/{model}; zotctl models list --provider {provider} --all lists models"
        raise CommandError(Code.BAD_REQUEST, sentence)
    return provider, model


def checked_fallback(names: Sequence[str], settings: Settings, models: ModelChooser) -> list[str]:
    """Return a session's fallbacks as `provider/model`.

    Raises:
        CommandError: one does not exist, is the session's own model, or is named twice.
    """
    found: list[str] = []
    for name in names:
        label = "/".join(named(name, settings, models))
        if label == settings.label:
            raise CommandError(
                Code.BAD_REQUEST, f"the fallback {label} is the model of the session itself; leave it out"
            )
        if label in found:
            raise CommandError(Code.BAD_REQUEST, f"the fallback {label} is named twice; leave one out")
        found.append(label)
    return found
