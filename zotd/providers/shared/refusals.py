"""What vendors refuse, in their own words, and what the user can do about it: a table, the first row that matches counts.

The words are from the vendors' documents and from reports of their users. A row applies to answers with one of its statuses,
and to error events inside a stream, which have none.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from zotd.core.retry import Failure


class RefusalRow(NamedTuple):
    """One reason to refuse a request."""

    statuses: frozenset[int]
    words: re.Pattern[str]
    """What an error's type, code or message contains."""
    failure: Failure
    advice: str
    """Ends the sentence; `{title}`, `{name}` of the vendor, `{model}`, and `{ways}` to give a key are filled in."""
    refuses_content: bool = False
    beginning: str = ""
    """Begins the sentence."""


def _refusal(
    statuses: str, words: str, failure: Failure, advice: str, *, refuses_content: bool = False, beginning: str = ""
) -> RefusalRow:
    numbers = frozenset(int(status) for status in statuses.split())
    pattern = re.compile(words, re.IGNORECASE)
    return RefusalRow(numbers, pattern, failure, advice, refuses_content=refuses_content, beginning=beginning)


REFUSALS = (
    # Before everything else: 413 without words is one of these, too (see `failures`).
    _refusal(
        "400 413 422 500",
        r"prompt is too long|exceed[a-z]* (the )?(context|limit|model token limit|maximum number of tokens)"
        r"|context[ _](length|window|limit|size)|input is too long|maximum (context|prompt) length|reduce the length"
        r"|too large for model|request_too_large|input token count .* exceeds|model_max_prompt_tokens_exceeded",
        Failure.CONTEXT,
        "compact it",
        beginning="the conversation is too long for {model}: ",
    ),
    # SigV4, AWS.
    _refusal(
        "400 401 403",
        r"RequestTimeTooSkewed|signature (has )?expired|signature not yet current|clock skew|is (now )?(earlier|later) than",
        Failure.AUTH,
        "the clock of this machine is wrong: set it, for example with timedatectl set-ntp true",
    ),
    _refusal(
        "400 401 403",
        r"token[a-z ]* (is|has|was)?\s?expired|expired_?token|ExpiredTokenException|credentials? (is|has|have)? ?expired"
        r"|API key expired",
        Failure.AUTH,
        "the login has expired: {ways}",
    ),
    # Before keys: Bedrock answers 403, Copilot 400.
    _refusal(
        "400 403 404",
        r"unsupported_country|user location is not supported|not (supported|available|offered) in (this|your) (country|region)"
        r"|(country|region|territory)[^.]* not supported|doesn't support[^.]* in this region|region is not (enabled|supported)"
        r"|request not allowed",  # Anthropic's whole answer
        Failure.NO_MODEL,
        "{title} does not serve this country or region: use another region or another vendor",
    ),
    _refusal(
        "400 403 404",
        r"(don't|do not|doesn't|does not) have access to (the |this )?model|model access is denied|model_not_supported"
        r"|not authorized to perform[^.]*invoke|access to the model|must be a[^.]* member to use|is not enabled for",
        Failure.NO_MODEL,
        "the account may not use {model}: have it enabled at {title}, or use another model",
    ),
    _refusal(
        "404",
        r"model '[^']+' not found|try pulling it first",  # Ollama
        Failure.NO_MODEL,
        "install it with ollama pull {model}, or check its name with ollama list",
    ),
    _refusal(
        "400 404 422",
        r"model_not_found|DeploymentNotFound|deployment [^.]*does not exist|unknown model|invalid model|no such model"
        r"|model[^.]{0,80}(not found|does not exist|is not available|is invalid)|isn't supported on this route"
        r"|not found for API version|model identifier is invalid|on-demand throughput isn.t supported",
        Failure.NO_MODEL,
        "check the model's name: zotctl models list --provider {name} --all; the base URL may be wrong, too",
    ),
    # Gemini answers 400, AWS 403 to signatures with another key; litellm without a database says that it has none.
    _refusal(
        "400 403",
        r"API_KEY_INVALID|API key not valid|invalid[ _]api[ _]key|incorrect api key|SignatureDoesNotMatch|no_db_connection"
        r"|UnrecognizedClient|security token included in the request is invalid|InvalidClientTokenId",
        Failure.AUTH,
        "check the API key: {ways}",
    ),
    # Ollama answers 500, which would otherwise be asked again for hours. The context window takes a part of the memory.
    _refusal(
        "500",
        r"requires more system memory",
        Failure.REFUSED,
        "choose a smaller model, or set a smaller context_window for {model} in [[models]]",
    ),
    # llama.cpp answers 500, which would otherwise be asked again for hours.
    _refusal(
        "400 422 500",
        r"image input is not supported",
        Failure.REFUSED,
        "{model} takes no images: the next prompt goes on without them",
        refuses_content=True,
    ),
    _refusal(
        "400 403",
        r"content_filter|ResponsibleAIPolicy|content management policy|content[ _]policy|PROHIBITED_CONTENT|blocked by[^.]* safety"
        r"|guardrail|data_inspection_failed|high risk|content filtering|usage polic|our safety system",
        Failure.REFUSED,
        "its content filter objects to something in the conversation: rephrase it; /rewind goes back to before it",
        refuses_content=True,
    ),
    _refusal(
        "400 402 403 429",
        r"insufficient_quota|insufficient[ _](balance|credits|funds)|billing_hard_limit|credit balance is too low"
        r"|exceeded your current quota|spending[ _]limit|billing (is )?not (active|enabled)|payment required"
        r"|quota[ _]exceeded|premium request allowance",
        Failure.QUOTA,
        "the account has no credit: add some at {title}, or use another key",
    ),
)


def refusal_of(status: int | None, words: str) -> RefusalRow | None:
    """Return the row for an answer with this status, or for an error event if it is None."""
    return next(
        (row for row in REFUSALS if (status is None or status in row.statuses) and row.words.search(words)), None
    )


def filled(row: RefusalRow, text: str, values: Mapping[str, str]) -> str:
    """Return the sentence about an error that says `text`."""
    return f"{row.beginning.format(**values)}{text}; {row.advice.format(**values)}"
