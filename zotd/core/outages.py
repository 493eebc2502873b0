"""Which models have failed lately, and until when another one is asked instead. Pure: the caller has the clock."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from zotd.core.retry import REPEATED, ModelError

FIRST_REST_S = 60.0
"""Default for how long a model that was given up is not asked; the time doubles with each attempt that fails after it.
Vendors recover within minutes, and an attempt costs a step only the time that the vendor takes to refuse it."""

GROWTH = 15
"""The longest such time, as a multiple of the first; at once for a failure that does not pass by itself. A quarter of an
hour by default, because a user who adds credit should not wait for an hour."""

KEPT = 256
"""Most outages that are remembered; the oldest is forgotten first. A user has a handful of models."""

K = TypeVar("K", bound=Hashable)


class Outage(Struct, frozen=True):
    """The last failure of a model that has not answered since."""

    error: ModelError
    until: float
    """When it may be asked again, in seconds of the caller's clock."""
    rest_s: float


class ModelOutages(Generic[K]):
    """The outages of all models that the runs of this process ask, by what distinguishes them."""

    def __init__(self) -> None:
        self._known: dict[K, Outage] = {}

    def failed(self, key: K, error: ModelError, now: float, *, first_rest_s: float = FIRST_REST_S) -> None:
        """A run has given the model up. A vendor's `Retry-After` counts if it is longer than the rest."""
        longest_s = GROWTH * first_rest_s
        before = self._known.pop(key, None)
        if before is not None and now < before.until:
            rest_s = before.rest_s  # several runs noticed the same outage
        elif before is not None:
            rest_s = min(2 * before.rest_s, longest_s)
        else:
            rest_s = first_rest_s if error.failure in REPEATED else longest_s
        self._known[key] = Outage(error, now + max(rest_s, error.retry_after_s or 0.0), rest_s)
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]

    def answered(self, key: K) -> None:
        """The model has answered: its outage is over."""
        self._known.pop(key, None)

    def error(self, key: K) -> ModelError | None:
        """Return the model's last failure; None if it has answered since, or has not failed."""
        found = self._known.get(key)
        return None if found is None else found.error

    def rests(self, key: K, now: float) -> bool:
        """Return True while the model is not to be asked, unless every other one has failed, too."""
        found = self._known.get(key)
        return found is not None and now < found.until
