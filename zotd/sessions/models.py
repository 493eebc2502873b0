"""Which model a session uses, at which address, and with which key (`docs/protocol.md`, Environment and keys).

A key is looked for in this order: `--api-key`, the client's environment, a login by subscription, `auth.json`,
`api_key_command`, the daemon's environment. All but the first go only to the vendor's own host or to a base URL from the
configuration: a URL that came with a request could be anybody's.

Only the user's configuration names an address: a base URL that comes with a request is used as it is. Variables of the client
precede the daemon's.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import Struct, structs

from zotd.config.current import CurrentConfig
from zotd.core.ports import Model, StorageError
from zotd.core.records import Settings
from zotd.core.retry import Failure, ModelError
from zotd.logins.desk import Logins
from zotd.providers.catalog import Catalog
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.providers.shared.placeholders import BEGIN, PlaceholderError, filled, names
from zotd.providers.shared.vendors import Access, Vendor
from zotd.sessions.unavailable import Unavailable
from zotd.store.logins import VendorLogin
from zotd.wire.api import ModelInfo
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

LOGIN = "login"
"""The source of a key that is a login by subscription."""

RECENT = 8
"""How many models that were used last are offered first."""


class Keys(Struct, frozen=True):
    """Where keys are looked for besides the session's own environment."""

    stored: Callable[[], Mapping[str, str]]
    """Vendor to key, from `auth.json`; raises StorageError when the file cannot be used."""
    store: Callable[[str, str | None], bool]
    """Puts a vendor's key there, or with None takes it away; False: there was none. Blocks; raises StorageError."""
    command: Callable[[], Callable[[str], Awaitable[str | None]] | None]
    """Returns what asks the configured program for a vendor's key; None: no program is configured."""
    inherited: Mapping[str, str]
    """Keys, and other variables that requests depend on, from the daemon's own environment."""


class Place(NamedTuple):
    """Where requests go."""

    base_url: str
    """With its placeholders, if something is missing."""
    missing: str | None
    """What is missing besides a key, as an instruction; None: nothing."""


class VendorPlaces:
    """Where requests of each vendor go, and on which settings and environment variables that depends."""

    def __init__(self, config: CurrentConfig, inherited: Mapping[str, str]) -> None:
        """`inherited`: variables of the daemon's own environment."""
        self._config = config
        self._inherited = inherited
        self._needed: dict[tuple[str, str], Collection[str]] = {}
        """By vendor and configured URL; both are the same in almost every run."""

    def place(self, vendor: Vendor, environment: Environment) -> Place:
        """Return where the vendor's requests go, or what they lack."""
        address = self.configured_url(vendor.name) or vendor.base_url
        missing = self.missing(vendor, address, environment)
        return Place(filled(address, self.variables(vendor, environment)) if missing is None else address, missing)

    def missing(self, vendor: Vendor, base_url: str | None, environment: Environment) -> str | None:
        """Return what keeps requests from being made, besides a key, as an instruction; None: nothing."""
        if vendor.requires and (missing := vendor.missing_package):
            return missing
        address = base_url or vendor.base_url
        if BEGIN not in address:
            return None
        try:
            filled(address, self.variables(vendor, environment))
        except PlaceholderError as error:
            return f"{error}, or set providers.{vendor.name}.base_url in config.toml"
        return None

    def filled_url(self, provider: str, environment: Environment) -> str | None:
        """Return the configured base URL; raises ModelError if a variable of it has no value."""
        url = self.configured_url(provider)
        if url is None:
            return None
        try:
            return filled(url, {**self._inherited, **environment.variables})
        except PlaceholderError as error:
            raise ModelError(Failure.UNAVAILABLE, f"providers.{provider}.base_url has no value: {error}") from error

    def variables(self, vendor: Vendor, environment: Environment) -> Mapping[str, str]:
        """Return the variables that the vendor's requests depend on, as far as they are set."""
        needed = self.needed_variables(vendor)
        if not needed:
            return {}
        both = {**self._inherited, **environment.variables}
        return {name: both[name] for name in needed if both.get(name)}

    def needed_variables(self, vendor: Vendor) -> Collection[str]:
        """Return their names."""
        key = vendor.name, self.configured_url(vendor.name) or ""
        if key not in self._needed:
            self._needed[key] = dict.fromkeys((*vendor.variables, *names(key[1])))
        return self._needed[key]

    def configured_url(self, provider: str) -> str | None:
        """Return the base URL of the configuration, with its placeholders."""
        section = self._config.value.providers.get(provider)
        return section.base_url or None if section is not None else None

    def configured_api(self, provider: str) -> str | None:
        """Return which of OpenAI's APIs the configuration names."""
        section = self._config.value.providers.get(provider)
        return section.api if section is not None else None


class ModelChooser:
    """Chooses and opens models."""

    def __init__(
        self, *, catalog: Catalog, providers: Providers, keys: Keys, logins: Logins, config: CurrentConfig
    ) -> None:
        """The configuration may be replaced at any time."""
        self.catalog = catalog
        self.providers = providers
        """What opens models."""
        self.keys = keys
        """Where keys are looked for besides a session's environment."""
        self.logins = logins
        self._config = config
        self.places = VendorPlaces(config, keys.inherited)
        """Where requests go."""
        self._used: Sequence[tuple[str, str]] = ()
        """Vendors and models of the sessions that were created or switched last, the latest first."""

    def remember(self, provider: str, model: str) -> Sequence[tuple[str, str]]:
        """Prefer these for new sessions that name none; return the vendors and models used last, the latest first."""
        pair = (provider, model)
        self._used = [pair, *(used for used in self._used if used != pair)][:RECENT]
        return self._used

    def choose(
        self, provider: str | None, model: str | None, environment: Environment, *, keyless: bool = False
    ) -> tuple[str, str]:
        """The vendor and the model to use when a client asks for these, or for none.

        A CommandError comes out when there is no such vendor, or nothing was asked for and there is no key for any;
        `keyless`: then it is the first vendor that takes one.
        """
        if provider is None and model is not None:
            provider = self.vendor_of(model)
        name = provider or self._default_provider(environment, keyless=keyless)
        vendor = self.vendor(name)
        if model is None and provider is None:
            model = self._default_model(vendor)
        return vendor.name, model or self.catalog.default_model(vendor.name) or self._no_model(vendor)

    def known(self, provider: str, model: str) -> bool:
        """The catalog lists it, or the vendor serves whatever was loaded into it."""
        vendor = self.vendor(provider)
        return self.catalog.find(vendor.name, model) is not None or vendor.serves_unknown

    def listed(self, provider: str | None, environment: Environment, *, current: bool = False) -> list[ModelInfo]:
        """Models of one vendor, or of all of them; those without a key are marked as not ready.

        The models used last come first, then current ones by vendor, then those with a successor. `current`: without
        the latter, unless they were used last.
        """
        vendors = [self.vendor(provider)] if provider else self.catalog.vendors()
        rank = {pair: place for place, pair in enumerate(self._used)}
        found: list[ModelInfo] = []
        for vendor in vendors:
            infos = self.catalog.models(vendor.name)
            known = {info.id for info in infos}
            # Also one that no price list has, such as a model that was loaded into a server of the user.
            infos += [self.catalog.assumed(*used) for used in rank if used[0] == vendor.name and used[1] not in known]
            ready = self._is_ready(vendor, environment)
            found.extend(structs.replace(info, ready=ready and info.ready) for info in infos)
        found.sort(key=lambda info: (rank.get((info.provider, info.id), len(rank)), info.superseded))
        return [info for info in found if not (current and info.superseded) or (info.provider, info.id) in rank]

    def check(self, settings: Settings, environment: Environment) -> None:
        """Raise CommandError when a run would fail because a key or a setting is missing."""
        vendor = self.vendor(settings.provider)
        self._check_requirements(vendor, settings, environment)
        if settings.own_key and not environment.api_key:
            sentence = f"the key for {vendor.title} that this session was given is no longer in memory; pass it again with --api-key"
            raise CommandError(Code.BLOCKED, sentence)
        if environment.api_key or not self._needs_key(vendor):
            return
        if not self._foreign(settings) and not self._has_key(vendor, environment):
            if not vendor.key_env:
                raise CommandError(
                    Code.BLOCKED, f"you are not logged in to {vendor.title}; run: zotctl login {vendor.name}"
                )
            ways = f"set {vendor.key_env[0]}, pass --api-key, or run: zotctl login {vendor.name}"
            sentence = f"no key for {vendor.title}: {ways}"
            raise CommandError(Code.BLOCKED, sentence)

    async def open(self, settings: Settings, environment: Environment, told: set[str] | None = None) -> Model:
        """The model for a run. What keeps it from working is reported when it is used, as any failed request is.

        `told`: see `Providers.connect`.
        """
        try:
            vendor = self.vendor(settings.provider)
            if self._foreign(settings):
                access, key = None, environment.api_key
            else:
                access = self._access(vendor, environment)
                key = None if access is not None else await self._key(vendor, environment)
            base_url = settings.base_url or self.places.filled_url(settings.provider, environment)
            variables = self.places.variables(vendor, environment)
            choice = replace(self._choice(settings, key, access), base_url=base_url, variables=variables)
            return self.providers.connect(choice, told)
        except ModelError as error:
            return Unavailable(error)
        except CommandError as error:
            return Unavailable(ModelError(Failure.NO_KEY, error.sentence))

    def unmet(self, settings: Settings, *, has_tools: bool) -> str | None:
        """What of the settings the model does not fulfil, one sentence for the user; None: nothing is known."""
        return self.providers.unmet(self._choice(settings), settings.reasoning, has_tools=has_tools)

    def _choice(self, settings: Settings, key: str | None = None, access: Access | None = None) -> ModelChoice:
        base_url, api = (
            settings.base_url or self.places.configured_url(settings.provider),
            self.places.configured_api(settings.provider),
        )
        return ModelChoice(settings.provider, settings.model, key, base_url, api=api, access=access)

    def warm(self, provider: str) -> None:
        """Begin to load what the vendor's requests need, so that the first prompt does not wait for it."""
        self.providers.warm(provider)

    # --- choosing -------------------------------------------------------------------------------------------------

    def vendor(self, name: str) -> Vendor:
        """Return the vendor with this name; raises CommandError when there is none."""
        vendor = self.catalog.by_name.get(name)
        if vendor is None:
            known = ", ".join(vendor.name for vendor in self.catalog.vendors())
            raise CommandError(Code.BAD_REQUEST, f'unknown provider "{name}"; there are {known}')
        return vendor

    def vendor_of(self, model: str) -> str | None:
        """The vendor that lists `model`, the configured one first; None when none does."""
        vendors = [self._config.value.provider, *(vendor.name for vendor in self.catalog.vendors() if vendor.key_env)]
        return next((name for name in vendors if name and self.catalog.find(name, model)), None)

    def _default_provider(self, environment: Environment, *, keyless: bool) -> str:
        if configured := self._config.value.provider:
            return configured
        if self._used and self._usable(self._used[0][0], environment):
            return self._used[0][0]
        for vendor in self.catalog.vendors():
            if self._needs_key(vendor) and self._has_key(vendor, environment):
                return vendor.name
        keyed = [vendor for vendor in self.catalog.vendors() if vendor.key_env]
        if keyless:
            return keyed[0].name
        variables = [vendor.key_env[0] for vendor in keyed[:2]]
        raise CommandError(
            Code.BLOCKED,
            f"no model is configured: set {' or '.join(variables)}, run zotctl login PROVIDER, "
            "or name a provider that needs none (--provider ollama, llamacpp or local)",
        )

    def _default_model(self, vendor: Vendor) -> str | None:
        configured = self._config.value
        if configured.model and configured.provider in {None, vendor.name}:
            return configured.model
        if self._used and self._used[0][0] == vendor.name:
            return self._used[0][1]
        return None

    def _no_model(self, vendor: Vendor) -> str:
        raise CommandError(Code.BAD_REQUEST, f"{vendor.title} has no default model; name one with --model")

    # --- keys -----------------------------------------------------------------------------------------------------

    def _usable(self, provider: str, environment: Environment) -> bool:
        vendor = self.catalog.by_name.get(provider)
        return vendor is not None and self._is_ready(vendor, environment)

    def _needs_key(self, vendor: Vendor) -> bool:
        return bool(vendor.key_env) or self.logins.vendor(vendor.name) is not None

    def _is_ready(self, vendor: Vendor, environment: Environment) -> bool:
        if self._needs_key(vendor) and not self._has_key(vendor, environment):
            return False
        return self.places.missing(vendor, self.places.configured_url(vendor.name), environment) is None

    def _check_requirements(self, vendor: Vendor, settings: Settings, environment: Environment) -> None:
        missing = self.places.missing(vendor, settings.base_url or self.places.configured_url(vendor.name), environment)
        if missing is not None:
            raise CommandError(Code.BLOCKED, f"{vendor.title} cannot be used yet: {missing}")

    def _foreign(self, settings: Settings) -> bool:
        """The request goes to a URL that only its client vouches for."""
        return settings.base_url is not None and settings.base_url != self.places.configured_url(settings.provider)

    def _has_key(self, vendor: Vendor, environment: Environment) -> bool:
        return any(True for _ in self.found_keys(vendor, environment))

    def found_keys(self, vendor: Vendor, environment: Environment) -> Iterator[tuple[str, str | None]]:
        """The places that have a key, in the order in which they count, and the key; None: a program has to be asked."""
        if environment.api_key:
            yield "option", environment.api_key
        if key := _first(environment.keys, vendor.key_env):
            yield "environment", key
        if self.login(vendor) is not None:
            yield LOGIN, None
        if key := self.stored_keys().get(vendor.name):
            yield "auth.json", key
        if self.keys.command() is not None and vendor.key_env:
            yield "api_key_command", None
        if key := _first(self.keys.inherited, vendor.key_env):
            yield "daemon", key

    def stored_keys(self) -> Mapping[str, str]:
        """Vendor to key, from `auth.json`; raises CommandError when the file cannot be used."""
        try:
            return self.keys.stored()
        except StorageError as error:
            raise CommandError(Code.BLOCKED, str(error)) from error

    def login(self, vendor: Vendor) -> VendorLogin | None:
        """Return the login by subscription; None: there is none. Raises CommandError when it cannot be read."""
        if self.logins.vendor(vendor.name) is None:
            return None
        try:
            return self.logins.listed().get(vendor.name)
        except StorageError as error:
            raise CommandError(Code.BLOCKED, str(error)) from error

    def _access(self, vendor: Vendor, environment: Environment) -> Access | None:
        """The login with which the session's requests are made; None: they are made with a key."""
        source, _ = next(self.found_keys(vendor, environment), (None, None))
        if source == LOGIN or (source is None and not vendor.key_env):
            return self.logins.access(vendor.name)
        return None

    async def _key(self, vendor: Vendor, environment: Environment) -> str | None:
        for source, found in self.found_keys(vendor, environment):
            if source == LOGIN:
                continue
            key = found
            if key is None and (ask := self.keys.command()) is not None:
                key = await ask(vendor.name)
            if key:
                return key
        return None


def _first(variables: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((variables[name] for name in names if variables.get(name)), None)
