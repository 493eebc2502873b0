"""Commands about the vendors' keys: trying one, giving one, taking it back, and where each comes from. No answer holds a key."""

from zotd.wire.base import Frozen


class AuthScope(Frozen, frozen=True):
    """As a session has it, with what its client's environment holds; without one, as a new session would."""

    session: str | None = None


class Login(Frozen, frozen=True):
    """A key for a vendor: it is put into `auth.json` and nowhere else."""

    provider: str
    api_key: str


class CheckKey(Frozen, frozen=True):
    """A key that somebody has typed, before it is stored: its vendor is asked for the list of models."""

    provider: str
    api_key: str


class KeyCheck(Frozen, frozen=True):
    """What the vendor says of it."""

    title: str
    """The vendor's name for people."""
    outcome: str
    """`accepted`; `refused` (status 401); `unreachable`; `unknown`: another answer, of which nothing follows."""
    sentence: str
    """The same for people."""


class Logout(Frozen, frozen=True):
    """The vendor whose key in `auth.json` is to go."""

    provider: str


class KeyInfo(Frozen, frozen=True, omit_defaults=False):
    """A vendor, and where its key comes from."""

    provider: str
    title: str
    """Its name for people."""
    variables: list[str]
    """The environment variables that can hold its key; empty: it needs none."""
    source: str | None
    """The first place that has one: `option` (`--api-key`), `environment` (of the client), `auth.json`,
    `api_key_command` (it will be asked) or `daemon` (its environment); null: none has."""
    stored: bool
    """`auth.json` has one, which may not be the first."""


class KeyList(Frozen, frozen=True):
    """Every vendor of the catalog, in its order."""

    providers: list[KeyInfo]
