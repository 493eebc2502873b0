"""What a vendor's error answer means, and the sentence for the user: the same rules for all vendors.

Which exception of an SDK brings the answer is the API module's business; the rest is here.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from zotd.core.retry import REPEATED, Failure, ModelError
from zotd.providers.shared.limits import RETRY_AFTER_S
from zotd.providers.shared.refusals import filled, refusal_of
from zotd.providers.shared.vendors import SILENCE_S, Target

MESSAGE_CHARS = 400
"""How much of a vendor's own words goes into a sentence; some send a whole request back."""

KIND_CHARS = 100
"""How much of an error's type and code is looked at."""

DATE_CHARS = 100
"""How much of a `Retry-After` is looked at."""

PAGE_BYTES = 4096
"""How much of a web page is searched for its title."""

_KINDS: Mapping[str, Failure] = {
    "overloaded": Failure.OVERLOADED,
    "insufficient_quota": Failure.QUOTA,
    "rate_limit": Failure.RATE_LIMIT,
    "invalid_request": Failure.REFUSED,
    "authentication": Failure.AUTH,
    "permission": Failure.AUTH,
    "billing": Failure.QUOTA,
    "not_found": Failure.NO_MODEL,
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
    status: object = None
    """Google."""
    details: object = None
    """Google."""
    innererror: object = None
    """Azure."""
    aws_message: object = msgspec.field(default=None, name="Message")
    aws_type: object = msgspec.field(default=None, name="__type")


class _Said(NamedTuple):
    """An error, as far as it is looked at."""

    words: str
    """Its type and codes."""
    message: str
    """On one line; empty if there is none."""
    wait_s: float | None = None
    """What Google asks to wait, which sends no header for it."""


def answered(target: Target, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The failure that an HTTP answer other than 200 stands for."""
    if body.lstrip()[:1] == b"<" and status < 500:
        return _page(target, status, body)
    said = _read(body)
    text = f"{target.vendor.title} answered {status}" + (f": {said.message}" if said.message else "")
    wait_s = retry_after_s(headers, datetime.now(UTC))
    wait_s = said.wait_s if wait_s is None else wait_s
    words = f"{headers.get('x-amzn-errortype', '')} {said.words} {said.message}"
    row = refusal_of(status, words)
    # Gemini uses the words of an empty account for a rate limit, too, and then says how long to wait.
    if row is not None and not (status == 429 and said.wait_s is not None):
        sentence = filled(row, text, _values(target))
        content = row.refuses_content or status == 413
        return ModelError(row.failure, sentence, refuses_content=content, refuses_key=status == 401)
    if status == 413:
        sentence = f"the conversation is too long for {target.model.id}: {text}; compact it"
        return ModelError(Failure.CONTEXT, sentence, refuses_content=True)
    return _temporary(status, text, wait_s) or _rejected(target, status, text)


def _temporary(status: int, text: str, wait_s: float | None) -> ModelError | None:
    if status == 429:
        failure, way_out = Failure.RATE_LIMIT, "wait, or use another model"
    elif status in {503, 529}:
        failure, way_out = Failure.OVERLOADED, "it is overloaded, try again later"
    elif status >= 500 or status == 408:
        failure, way_out = Failure.SERVER, "try again later"
    else:
        return None
    return ModelError(failure, f"{text}; {way_out}", retry_after_s=wait_s, status=status)


def _rejected(target: Target, status: int, text: str) -> ModelError:
    """The failure of a request that no row of `refusals` knows."""
    vendor = target.vendor
    match status:
        case 401 | 403:
            advice = f"check the API key: {vendor.key_ways}"
            if target.access is not None:
                advice = f"check your account there, or {_ways(target)}"
            return ModelError(Failure.AUTH, f"{text}; {advice}", refuses_key=status == 401)
        case 402:
            advice = f"the account has no credit: add some at {vendor.title}, or use another key"
            return ModelError(Failure.QUOTA, f"{text}; {advice}")
        case 404:
            advice = f"check the model's name and --base-url; zotctl models list --provider {vendor.name} lists models"
            return ModelError(Failure.NO_MODEL, f"{text}; {advice}")
        case _:
            advice = "the request has to change; /rewind goes back to before it"
    return ModelError(Failure.REFUSED, f"{text}; {advice}", refuses_content=status in {400, 422})


def _page(target: Target, status: int, body: bytes) -> ModelError:
    """The failure of a web page in place of an answer: a proxy, a login page of a network, or another kind of server."""
    sentence = (
        f"{target.base_url} answered {status} with a web page: {_title(body)}; something else than {target.vendor.title} "
        "answers there: check the network, the proxy and --base-url"
    )
    return ModelError(Failure.WRONG_SERVER, sentence, refuses_key=status == 401)


def _ways(target: Target) -> str:
    """How to give a key, or to log in again, as a part of a sentence."""
    return target.vendor.key_ways if target.access is None else f"run: zotctl login {target.vendor.name}"


def _values(target: Target) -> dict[str, str]:
    vendor = target.vendor
    return {"title": vendor.title, "name": vendor.name, "model": target.model.id, "ways": _ways(target)}


def reported(target: Target, error: object) -> ModelError:
    """The failure of an error event inside a stream that had begun."""
    said = _read(msgspec.json.encode(error))
    reason = said.message or said.words or "an unspecified error"
    row = refusal_of(None, f"{said.words} {said.message}")
    if row is not None:
        sentence = filled(row, f"{target.vendor.title} cut off its reply: {reason}", _values(target))
        return ModelError(row.failure, sentence, refuses_content=row.refuses_content)
    if failure := next((kind for word, kind in _KINDS.items() if word in said.words), None):
        way_out = "try again later" if failure in REPEATED else "the request has to change"
        sentence = f"{target.vendor.title} cut off its reply: {reason}; {way_out}"
        return ModelError(failure, sentence, refuses_content="image" in said.words)
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
    sentence = f"{target.base_url} answered with {what} instead of a reply: {_title(body)}; check --base-url"
    return ModelError(Failure.WRONG_SERVER, sentence)


def _title(body: bytes) -> str:
    """A page's title, or its beginning."""
    title = re.search(rb"<title[^>]*>([^<]+)", body[:PAGE_BYTES], re.IGNORECASE)
    return _short((title[1] if title else body[:PAGE_BYTES]).decode(errors="replace"))


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
        from email.utils import parsedate_to_datetime  # noqa: PLC0415  (five modules; most vendors send a number)

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


def _read(body: bytes) -> _Said:
    """The error that a body describes; some vendors send a list of one, or a line of text."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        is_text = body.lstrip()[:1] not in {b"<", b"{", b"["} and body.isascii()
        return _Said("", _short(body.decode()).rstrip(".") if is_text else "")
    outer = _convert(found[0] if isinstance(found, list) and found else found)
    words = _convert(outer.error) if isinstance(outer.error, dict) else outer
    inner = _convert(words.innererror)
    messages = (words.message, words.error, words.detail, words.aws_message)
    message = next((text for text in messages if isinstance(text, str)), "")
    kinds = (words.type, words.code, words.status, words.aws_type, inner.code, *_reasons(words.details))
    named = (str(kind)[:KIND_CHARS] for kind in kinds if isinstance(kind, str | int) and kind)
    return _Said(" ".join(named), _short(message).rstrip("."), _google_wait_s(words.details))


def _convert(value: object) -> _Words:
    try:
        return msgspec.convert(value, _Words)
    except msgspec.ValidationError:
        return _Words()


def _reasons(details: object) -> list[object]:
    """The reasons among Google's details, such as `API_KEY_INVALID`."""
    return [one.get("reason") for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _google_wait_s(details: object) -> float | None:
    """What `RetryInfo` among Google's details asks to wait: `"34s"`."""
    for one in details if isinstance(details, list) else ():
        delay = one.get("retryDelay") if isinstance(one, dict) else None
        if isinstance(delay, str) and (seconds := _number(delay.removesuffix("s"))) is not None:
            return min(seconds, RETRY_AFTER_S)
    return None


def _short(text: str) -> str:
    """A server's own words, on one line and of bounded length."""
    return " ".join(text[: 4 * MESSAGE_CHARS].split())[:MESSAGE_CHARS]
