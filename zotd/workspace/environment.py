"""The environment and the keys that a session got from its client (`docs/protocol.md`, Environment and keys).

Key variables never reach a tool: they are taken out and held apart, in memory only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from zotd import logs

TRUST = "ZOT_TRUST"
"""`1`: this client trusts the code of its working directory."""

WITHHELD_PREFIXES = ("ZOTCORE_",)

WITHHELD = frozenset({"TELEGRAM_BOT_TOKEN"})
"""The built-in channel's, which gets it from the daemon's own environment."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What tools run in, and what only providers get."""

    variables: Mapping[str, str]
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_key: str | None = field(default=None, repr=False)
    """From `--api-key`."""
    trusts_workspace: bool = False
    """See `TRUST`."""

    def without_own_key(self) -> "Environment":
        """Return it without the client's own key, for another vendor: a key must not reach a vendor that it was not given for."""
        return replace(self, api_key=None)


def split(env: Mapping[str, str], key_variables: frozenset[str], api_key: str | None) -> Environment:
    """Tell a client's variables from its keys; tokens of ours go nowhere."""
    variables = {name: value for name, value in env.items() if not _withheld(name) and name not in key_variables}
    keys = {name: value for name, value in env.items() if name in key_variables and value}
    for secret in (*keys.values(), api_key or ""):
        logs.hide(secret)
    return Environment(variables, keys, api_key, trusts_workspace=variables.get(TRUST) == "1")


def _withheld(name: str) -> bool:
    return (
        name in WITHHELD or name.startswith(WITHHELD_PREFIXES) or (name.startswith("ZOT") and name.endswith("_TOKEN"))
    )
