"""Why a model request fails, which failures are tried again, and after which pause.

Pure: the caller brings the random number and the clock, and waits.
"""

from dataclasses import dataclass
from enum import StrEnum

BASE_S = 0.5
"""The first pause; it doubles with each failure."""

PAUSE_S = 60.0
"""The longest pause by default. Vendors recover within minutes; to wait longer only delays the run."""

PATIENCE_S = 4 * 3600.0
"""How long an outage is waited out by default, by runs of the daemon."""

ATTENDED_S = 60.0
"""The same for a program that somebody waits for: `zot -p` on a terminal, `zot rpc`, `Runtime`."""

JITTER = 0.5
"""Each pause is moved by up to this part of itself, so that sessions that failed together do not come back together."""

TAKEN_AT_ITS_WORD = 3
"""So many times in a row a vendor may ask for a pause shorter than ours; `Retry-After: 0` would be a tight loop."""

BROKEN_REPLIES = 30
"""A step is given up after so many replies that broke off: each of them may be billed."""


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
    """The reply broke off after its first byte, or is not in the vendor's format."""
    INTERNAL = "internal"
    """A fault of ours or of a vendor's library."""
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


REPEATED = frozenset(
    {
        Failure.RATE_LIMIT,
        Failure.OVERLOADED,
        Failure.SERVER,
        Failure.CONNECTION,
        Failure.UNREACHABLE,
        Failure.CUT,
    }
)
"""Failures that may pass by themselves."""

OF_UNKNOWN_COST = frozenset({Failure.CONNECTION, Failure.CUT, Failure.INTERNAL})
"""The vendor may have worked, and then bills it. The other failures cost nothing: the request was not sent, or it was
answered with an error, and vendors bill replies only."""

_BRIEFLY = {
    Failure.RATE_LIMIT: "rate limit",
    Failure.OVERLOADED: "overloaded",
    Failure.SERVER: "server error",
    Failure.CONNECTION: "no answer",
    Failure.UNREACHABLE: "no connection",
    Failure.CUT: "the reply was cut off",
}


class ModelError(Exception):
    """A model request failed; the message is one sentence for the user, with the way out."""

    def __init__(
        self,
        failure: Failure,
        sentence: str,
        *,
        retry_after_s: float | None = None,
        status: int | None = None,
        refuses_content: bool = False,
    ) -> None:
        """`retry_after_s`: what the provider asked for. `status`: of its HTTP answer, if that was a passing error.

        `refuses_content`: it does not like what the request holds.
        """
        super().__init__(sentence)
        self.failure = failure
        self.sentence = sentence
        self.retry_after_s = retry_after_s
        self.refuses_content = refuses_content
        self.status = status

    @property
    def brief(self) -> str:
        """The failure in two or three words, for lists: `HTTP 529`, `no connection`."""
        return f"HTTP {self.status}" if self.status is not None else _BRIEFLY.get(self.failure, str(self.failure))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a run waits out an outage, and with which pauses.

    Attributes:
        patience_s: time from the first failure to the last try, in seconds. 0: nothing is tried again.
        pause_s: the longest pause between two tries, in seconds; a vendor's `Retry-After` may be longer.
    """

    patience_s: float = PATIENCE_S
    pause_s: float = PAUSE_S

    def delay_s(self, error: ModelError, *, failures: int, elapsed_s: float, random: float) -> float | None:
        """Seconds to wait before the next try; None: this failure ends the step.

        Args:
            error: the last failure.
            failures: failures in a row, from 1.
            elapsed_s: time since the first of them.
            random: in [0, 1).
        """
        left = self.patience_s - elapsed_s
        if error.failure not in REPEATED or left <= 0:
            return None
        # The exponent is bounded, because hours of failures would overflow a float.
        planned = min(self.pause_s, BASE_S * 2.0 ** min(failures - 1, 20)) * (1 + JITTER * (2 * random - 1))
        planned = min(planned, self.pause_s, left)
        asked = error.retry_after_s
        if asked is None:
            return planned
        if asked > left:
            return None
        return asked if failures <= TAKEN_AT_ITS_WORD else max(asked, planned)


def gave_up(error: ModelError, *, failures: int, elapsed_s: float) -> str:
    """The sentence for a run that ends with `error` after it has tried again."""
    if error.failure not in REPEATED or failures <= 1:
        return error.sentence
    return f"gave up after {failures} tries in {_duration(elapsed_s)}: {error.sentence}; /continue tries again"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
