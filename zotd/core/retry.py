"""Retry policy for model requests: kinds of failure, which ones are retried, and after which pause.

Pure: the caller supplies the random number and the elapsed time, and does the waiting.
"""

from enum import StrEnum

from msgspec import Struct

BASE_S = 0.5
"""The first pause in seconds; it doubles with each failure. Also stated in `config.sections` and `docs/durability.md`."""

PAUSE_S = 60.0
"""The longest pause by default. Vendors recover within minutes; to wait longer only delays the run."""

PATIENCE_S = 4 * 3600.0
"""Default time for which runs in the daemon keep retrying."""

ATTENDED_S = 60.0
"""The same for programs that a user waits for: `zot -p` on a terminal, `zot rpc`, `Runtime`."""

JITTER = 0.5
"""Fraction by which each pause varies at random, so that sessions that failed together do not retry together."""

TAKEN_AT_ITS_WORD = 3
"""Number of consecutive failures for which a `Retry-After` shorter than the planned pause is honoured. With
`Retry-After: 0` a run would otherwise retry in a tight loop."""

BROKEN_REPLIES = 30
"""Number of incomplete replies after which a step fails: the vendor may bill each of them."""


class Failure(StrEnum):
    """Kind of a failure, as far as the retry policy distinguishes them."""

    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    CONNECTION = "connection"
    """The request was sent, at least in part, and no response arrived."""
    UNREACHABLE = "unreachable"
    """No connection was established, so nothing was sent."""
    CUT = "cut"
    """The reply ended after its first byte, or is not in the vendor's format."""
    INTERNAL = "internal"
    """A bug in zot or in a vendor's library."""
    NO_KEY = "no_key"
    AUTH = "auth"
    CONTEXT = "context"
    """The transcript exceeds the model's context window."""
    REFUSED = "refused"
    """The request is invalid or not allowed; retrying does not help."""
    TOO_LARGE = "too_large"
    """The reply exceeds a limit of `core.reply`; another attempt would, too."""
    UNAVAILABLE = "unavailable"
    """Something is missing on this machine: a package, a model file."""
    NO_MODEL = "no_model"
    """The vendor does not serve the model to this account: an unknown name, no access, a country that is not served."""
    QUOTA = "quota"
    """The account has no credit, or its allowance is used up."""
    WRONG_SERVER = "wrong_server"
    """Something else than the vendor answered: a proxy, the login page of a network."""


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
"""Failures that are retried because they may be temporary."""

_OF_THE_MODEL = frozenset(
    {
        Failure.CONTEXT,
        Failure.NO_MODEL,
        Failure.QUOTA,
        Failure.AUTH,
        Failure.NO_KEY,
        Failure.UNAVAILABLE,
        Failure.WRONG_SERVER,
    }
)
"""Failures that a retry does not change, but that another model need not have."""

OF_UNKNOWN_COST = frozenset({Failure.CONNECTION, Failure.CUT, Failure.INTERNAL})
"""Failures after which the vendor may have done work that it bills. The others are free: the request was not sent, or
was answered with an error, and vendors bill only replies."""

_BRIEFLY = {
    Failure.RATE_LIMIT: "rate limit",
    Failure.OVERLOADED: "overloaded",
    Failure.SERVER: "server error",
    Failure.CONNECTION: "no answer",
    Failure.UNREACHABLE: "no connection",
    Failure.CUT: "the reply was cut off",
    Failure.NO_MODEL: "no such model",
    Failure.QUOTA: "no credit",
    Failure.AUTH: "key refused",
    Failure.NO_KEY: "no key",
    Failure.WRONG_SERVER: "not the vendor",
}


class ModelError(Exception):
    """A model request failed; the message is one sentence for the user that says what to do."""

    def __init__(
        self,
        failure: Failure,
        sentence: str,
        *,
        retry_after_s: float | None = None,
        status: int | None = None,
        refuses_content: bool = False,
        refuses_key: bool = False,
    ) -> None:
        """Create the error.

        Args:
            failure: kind of the failure.
            sentence: message for the user.
            retry_after_s: pause that the provider asked for, in seconds.
            status: HTTP status, if it is that of a temporary error.
            refuses_content: the vendor rejected the content of the request, e.g. an image.
            refuses_key: the vendor rejected the key or token (status 401); another one may be accepted.
        """
        super().__init__(sentence)
        self.failure = failure
        self.sentence = sentence
        self.retry_after_s = retry_after_s
        self.refuses_content = refuses_content
        self.refuses_key = refuses_key
        self.status = status

    @property
    def brief(self) -> str:
        """The failure in two or three words, for lists: `HTTP 529`, `no connection`."""
        return f"HTTP {self.status}" if self.status is not None else _BRIEFLY.get(self.failure, str(self.failure))


class RetryPolicy(Struct, frozen=True):
    """How long a run retries failed requests, and with which pauses.

    Attributes:
        patience_s: time from the first failure to the last attempt, in seconds. 0 disables retries.
        pause_s: longest pause between two attempts, in seconds; a vendor's `Retry-After` may be longer.
    """

    patience_s: float = PATIENCE_S
    pause_s: float = PAUSE_S

    def delay_s(self, error: ModelError, *, failures: int, elapsed_s: float, random: float) -> float | None:
        """Return the pause before the next attempt in seconds, or None to give up.

        Args:
            error: the last failure.
            failures: number of consecutive failures, from 1.
            elapsed_s: time since the first of them, in seconds.
            random: in [0, 1).
        """
        left = self.patience_s - elapsed_s
        if error.failure not in REPEATED or left <= 0:
            return None
        # The exponent is bounded, because the number of failures in hours would overflow a float.
        planned = min(self.pause_s, BASE_S * 2.0 ** min(failures - 1, 20)) * (1 + JITTER * (2 * random - 1))
        # With `left`, so that the last attempt is made at the end of the patience and not after it.
        planned = min(planned, self.pause_s, left)
        asked = error.retry_after_s
        if asked is None:
            return planned
        if asked > left:
            # The vendor asks for more time than is left: fail now rather than after a wait that cannot succeed.
            return None
        return asked if failures <= TAKEN_AT_ITS_WORD else max(asked, planned)


def is_of_the_model(error: ModelError) -> bool:
    """Return True if another model may answer the request that failed so.

    Not if the request itself is refused, by the vendor, a guard or a budget: others would refuse it, too, or must not
    be asked. Not after a fault of ours either.
    """
    return error.failure in REPEATED or error.failure in _OF_THE_MODEL


def gave_up(error: ModelError, *, failures: int, elapsed_s: float) -> str:
    """Return the message for a run that ends with `error`; it includes the number of attempts if there were several."""
    if error.failure not in REPEATED or failures <= 1:  # nothing was retried
        return error.sentence
    return f"gave up after {failures} tries in {_duration(elapsed_s)}: {error.sentence}; /continue tries again"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
