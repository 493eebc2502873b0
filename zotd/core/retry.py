"""Why a model request fails, and which failures are tried again (issue: before the first byte only).

Pure: the caller brings the random number and waits.
"""

from enum import StrEnum

TRIES = 3
"""How often a request is repeated after its first failure."""

BASE_S = 0.5
"""First delay; it doubles with each try."""

CAP_S = 30.0
"""Longest delay, also for a provider's own `Retry-After`; a longer one is not worth waiting for unasked."""

JITTER = 0.2
"""Each delay is moved by up to this part of itself, so that sessions do not come back together."""


class Failure(StrEnum):
    """What went wrong, as far as deciding what to do needs to know."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONNECTION = "connection"
    """The request was sent, or part of it, and nothing came back."""
    UNREACHABLE = "unreachable"
    """No connection came about, so that nothing was sent."""
    CUT = "cut"
    """The connection ended, or an error came, after the first byte."""
    NO_KEY = "no_key"
    AUTH = "auth"
    CONTEXT = "context"
    """The transcript is longer than the model takes."""
    REFUSED = "refused"
    """The request is wrong or not allowed; trying again changes nothing."""
    TOO_LARGE = "too_large"
    """The reply is longer than a reply may be (`core.reply`); another try would be as long."""
    UNAVAILABLE = "unavailable"
    """Something on this machine is missing: a package, a model file."""


REPEATED = frozenset({Failure.RATE_LIMIT, Failure.OVERLOADED, Failure.SERVER, Failure.CONNECTION, Failure.UNREACHABLE})

OF_UNKNOWN_COST = frozenset({Failure.CONNECTION, Failure.CUT})
"""The vendor may have worked, and then bills it. The other failures cost nothing: the request was not sent, or it was
answered with an error, and vendors bill replies only."""


class ModelError(Exception):
    """A model request failed; the message is one sentence for the user, with the way out."""

    def __init__(
        self,
        failure: Failure,
        sentence: str,
        *,
        retry_after_s: float | None = None,
        refuses_content: bool = False,
    ) -> None:
        """`retry_after_s`: what the provider asked for. `refuses_content`: it does not like what the request holds."""
        super().__init__(sentence)
        self.failure = failure
        self.sentence = sentence
        self.retry_after_s = retry_after_s
        self.refuses_content = refuses_content


def delay_s(error: ModelError, tries: int, random: float) -> float | None:
    """Seconds to wait before try `tries` + 1, or None when this failure ends the step.

    `tries` is how often the step was sent already (1 after the first failure); `random` lies in [0, 1).
    """
    if error.failure not in REPEATED or tries > TRIES:
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= CAP_S else None
    planned = BASE_S * 2.0 ** (tries - 1)
    return min(CAP_S, planned * (1 + JITTER * (2 * random - 1)))
