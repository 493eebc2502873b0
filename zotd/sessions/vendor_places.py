"""Where a vendor's requests go, and on which settings and environment variables that depends.

Only the user's configuration names an address: a base URL that comes with a request is used as it is. Variables of the client
precede the daemon's.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from zotd.config.current import CurrentConfig
from zotd.core.retry import Failure, ModelError
from zotd.providers.shared.placeholders import BEGIN, PlaceholderError, filled, names
from zotd.providers.shared.vendors import Vendor
from zotd.workspace.environment import Environment


class Place(NamedTuple):
    """Where requests go."""

    base_url: str
    """With its placeholders, if something is missing."""
    missing: str | None
    """What is missing besides a key, as an instruction; None: nothing."""


class VendorPlaces:
    """The addresses of all vendors."""

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
            raise ModelError(Failure.REFUSED, f"providers.{provider}.base_url has no value: {error}") from error

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
