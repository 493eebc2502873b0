"""What a vendor's error answer means, and the sentence for the user: the same rules for all vendors.

Which exception of an SDK brings the answer is the API module's business; the rest is here.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from zotd.core.retry import Failure, ModelError
from zotd.providers.shared.vendors import SILENCE_S, Target

MESSAGE_CHARS = 400
"""How much of a vendor's own words goes into a sentence; some send a whole request back."""

_TOO_LONG = re.compile(
    r"prompt is too long|exceed[a-z]* (the )?(context|limit|model token limit)|context[ _](length|window|limit|size)"
    r"|maximum (context|prompt) length|reduce the length|too large for model|request_too_large",
    re.IGNORECASE,
)
"""Vendors have no common code for it: Anthropic, OpenAI, llama.cpp, Mistral, Moonshot, xAI and Groq, in their words."""


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
        return ModelError(Failure.CONTEXT, f"the conversation is too long for {target.model.id}: {text}; compact it")
    if status in {401, 403}:
        return ModelError(Failure.AUTH, f"{text}; check the API key: {target.vendor.key_ways}")
    if status == 429 and "insufficient_quota" not in words:
        return ModelError(Failure.RATE_LIMIT, f"{text}; wait, or use another model", retry_after_s=wait_s)
    if status in {503, 529}:
        return ModelError(Failure.OVERLOADED, f"{text}; it is overloaded, try again later", retry_after_s=wait_s)
    if status >= 500 or status == 408:
        return ModelError(Failure.SERVER, f"{text}; try again later", retry_after_s=wait_s)
    way_out = "check the model's name and --base-url" if status == 404 else "the request has to change"
    return ModelError(Failure.REFUSED, f"{text}; {way_out}")


def reported(target: Target, error: object) -> ModelError:
    """The failure of an error event inside a stream that had begun."""
    words, message = _read(msgspec.json.encode(error))
    if _TOO_LONG.search(f"{words} {message}"):
        return ModelError(Failure.CONTEXT, f"the conversation is too long for {target.model.id}: {message}; compact it")
    return cut(target, message or words or "an error without words")


def cut(target: Target, reason: str) -> ModelError:
    """The failure of a reply that ended too early."""
    return ModelError(Failure.CUT, f"{target.vendor.title} broke its reply off: {reason}; send the prompt again")


def unreachable(target: Target, error: BaseException, *, was_sent: bool) -> ModelError:
    """The failure of a request that got no answer."""
    reason = str(error.__cause__ or error).rstrip(".") or type(error).__name__
    sentence = f"cannot reach {target.vendor.title} at {target.base_url}: {reason}; check the network and --base-url"
    return ModelError(Failure.CONNECTION if was_sent else Failure.UNREACHABLE, sentence)


def silent(target: Target, *, was_sent: bool) -> ModelError:
    """The failure of a request that was not answered in time."""
    sentence = f"{target.vendor.title} at {target.base_url} did not answer within {SILENCE_S:.0f} s; try again later"
    return ModelError(Failure.CONNECTION if was_sent else Failure.UNREACHABLE, sentence)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that the vendor asks to wait (`retry-after-ms`; RFC 9110 10.2.3, seconds or a date), None: nothing."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    try:
        date = parsedate_to_datetime(asked)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
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
    return f"{words.type or ''} {words.code or ''}".strip(), " ".join(message.split())[:MESSAGE_CHARS].rstrip(".")
