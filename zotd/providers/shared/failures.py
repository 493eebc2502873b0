"""What a vendor's error answer means, and the sentence for the user: the same rules for all vendors.

Which exception of an SDK brings the answer is the API module's business; the rest is here.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from zotd.core.retry import REPEATED, Failure, ModelError
from zotd.providers.shared.limits import RETRY_AFTER_S
from zotd.providers.shared.vendors import SILENCE_S, Target

MESSAGE_CHARS = 400
"""How much of a vendor's own words goes into a sentence; some send a whole request back."""

KIND_CHARS = 100
"""How much of an error's type and code is looked at."""

DATE_CHARS = 100
"""How much of a `Retry-After` is looked at."""

PAGE_BYTES = 4096
"""How much of a web page is searched for its title."""

_TOO_LONG = re.compile(
    r"prompt is too long|exceed[a-z]* (the )?(context|limit|model token limit)|context[ _](length|window|limit|size)"
    r"|maximum (context|prompt) length|reduce the length|too large for model|request_too_large",
    re.IGNORECASE,
)
"""Vendors have no common code for it: Anthropic, OpenAI, llama.cpp, Mistral, Moonshot, xAI and Groq, in their words."""


_NO_CREDIT = re.compile(
    r"insufficient_quota|insufficient[ _]balance|billing_hard_limit|credit balance is too low|exceeded your current quota",
    re.IGNORECASE,
)
"""An account without money: OpenAI, DeepSeek and Anthropic, in their words."""

_KINDS: Mapping[str, Failure] = {
    "overloaded": Failure.OVERLOADED,
    "insufficient_quota": Failure.REFUSED,
    "rate_limit": Failure.RATE_LIMIT,
    "invalid_request": Failure.REFUSED,
    "authentication": Failure.AUTH,
    "permission": Failure.AUTH,
    "billing": Failure.REFUSED,
    "not_found": Failure.REFUSED,
    "invalid_prompt": Failure.REFUSED,
    "image": Failure.REFUSED,
    "policy": Failure.REFUSED,
}
"""What a type or code of an error inside a stream means, by a part of it; any other may pass by itself."""


class _Words(msgspec.Struct):
    message: object = None
    type: object = None
    code: object = None
    error: object = None
    detail: object = None


def answered(target: Target, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The failure that an HTTP answer other than 200 stands for."""
    words, message = _read(body)
    text = f"{target.vendor.title} answered {status}" + (f": {message}" if message else "")
    wait_s = retry_after_s(headers, datetime.now(UTC))
    if status == 413 or (status in {400, 422, 500} and _TOO_LONG.search(f"{words} {message}")):
        sentence = f"the conversation is too long for {target.model.id}: {text}; compact it"
        return ModelError(Failure.CONTEXT, sentence, refuses_content=status == 413)
    if status in {401, 403}:
        advice = f"check the API key: {target.vendor.key_ways}"
        if target.access is not None:
            advice = f"check your account there, or run: zotctl login {target.vendor.name}"
        return ModelError(Failure.AUTH, f"{text}; {advice}", refuses_key=status == 401)
    if status == 402 or (status in {400, 429} and _NO_CREDIT.search(f"{words} {message}")):
        return ModelError(
            Failure.REFUSED, f"{text}; the account has no credit: add some at {target.vendor.title}, or use another key"
        )
    if status == 429:
        sentence = f"{text}; wait, or use another model"
        return ModelError(Failure.RATE_LIMIT, sentence, retry_after_s=wait_s, status=status)
    if status in {503, 529}:
        sentence = f"{text}; it is overloaded, try again later"
        return ModelError(Failure.OVERLOADED, sentence, retry_after_s=wait_s, status=status)
    if status >= 500 or status == 408:
        return ModelError(Failure.SERVER, f"{text}; try again later", retry_after_s=wait_s, status=status)
    way_out = "the request has to change; /rewind goes back to before it"
    if status == 404:
        way_out = "check the model's name and --base-url"
    return ModelError(Failure.REFUSED, f"{text}; {way_out}", refuses_content=status in {400, 422})


def reported(target: Target, error: object) -> ModelError:
    """The failure of an error event inside a stream that had begun."""
    words, message = _read(msgspec.json.encode(error))
    if _TOO_LONG.search(f"{words} {message}"):
        return ModelError(Failure.CONTEXT, f"the conversation is too long for {target.model.id}: {message}; compact it")
    if _NO_CREDIT.search(f"{words} {message}"):
        return ModelError(Failure.REFUSED, f"{target.vendor.title}: {message or words}; the account has no credit")
    reason = message or words or "an unspecified error"
    if failure := next((kind for word, kind in _KINDS.items() if word in words), None):
        way_out = "try again later" if failure in REPEATED else "the request has to change"
        sentence = f"{target.vendor.title} cut off its reply: {reason}; {way_out}"
        return ModelError(failure, sentence, refuses_content="image" in words)
    return cut(target, reason)


_HEADERS_TOO_LONG = "Receive buffer too long"
"""What h11, which reads HTTP for both SDKs, says of headers above the limit that httpcore sets: 100 KiB."""


def cut(target: Target, reason: str) -> ModelError:
    """The failure of a reply that ended too early."""
    return ModelError(Failure.CUT, f"{target.vendor.title} cut off its reply: {_short(reason)}; send the prompt again")


def too_large(target: Target, limit: str) -> ModelError:
    """The failure of a reply of which no more is read."""
    sentence = f"{target.vendor.title} sent {limit}, so the reply was cut off there; ask for less at a time"
    return ModelError(Failure.TOO_LARGE, sentence)


def foreign(target: Target, what: str, body: bytes) -> ModelError:
    """The failure of an answer with status 200 that is no reply; `what` it is instead, of which `body` is a part."""
    title = re.search(rb"<title[^>]*>([^<]+)", body[:PAGE_BYTES], re.IGNORECASE)
    said = _short((title[1] if title else body[:PAGE_BYTES]).decode(errors="replace"))
    sentence = f"{target.base_url} answered with {what} instead of a reply: {said}; check --base-url"
    return ModelError(Failure.REFUSED, sentence)


def unreachable(target: Target, error: BaseException, *, was_sent: bool) -> ModelError:
    """The failure of a request that got no answer."""
    reason = _short(str(error.__cause__ or error)).rstrip(".") or type(error).__name__
    if reason == _HEADERS_TOO_LONG:  # no outage: the next answer would be the same
        sentence = f"{target.base_url} answered with headers of more than 100 KiB; check --base-url"
        return ModelError(Failure.TOO_LARGE, sentence)
    sentence = f"cannot reach {target.vendor.title} at {target.base_url}: {reason}; check the network and --base-url"
    return ModelError(Failure.CONNECTION if was_sent else Failure.UNREACHABLE, sentence)


def silent(target: Target, *, was_sent: bool) -> ModelError:
    """The failure of a request that was not answered in time."""
    sentence = f"{target.vendor.title} at {target.base_url} did not answer within {SILENCE_S:.0f} s; try again later"
    return ModelError(Failure.CONNECTION if was_sent else Failure.UNREACHABLE, sentence)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the vendor asks to wait (`retry-after-ms`; RFC 9110 10.2.3, seconds or a date), None: nothing.

    At most `RETRY_AFTER_S`.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, RETRY_AFTER_S)
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is None and asked is not None:
        try:
            date = parsedate_to_datetime(asked[:DATE_CHARS])
        except (ValueError, OverflowError):
            return None
        seconds = max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())
    return None if seconds is None else min(seconds, RETRY_AFTER_S)


def _number(text: str | None) -> float | None:
    try:
        number = float((text or "")[:DATE_CHARS])
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _read(body: bytes) -> tuple[str, str]:
    """The error's type and code, and its message on one line; empty when the body is none of ours (a proxy's page)."""
    try:
        words = msgspec.json.decode(body, type=_Words)
        if isinstance(words.error, dict):
            words = msgspec.convert(words.error, _Words)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", ""
    message = next((w for w in (words.message, words.error, words.detail) if isinstance(w, str)), "")
    kinds = (str(kind)[:KIND_CHARS] for kind in (words.type, words.code) if isinstance(kind, str | int) and kind)
    return " ".join(kinds), _short(message).rstrip(".")


def _short(text: str) -> str:
    """A server's own words, on one line and of bounded length."""
    return " ".join(text[: 4 * MESSAGE_CHARS].split())[:MESSAGE_CHARS]
