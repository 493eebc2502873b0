"""Masks secrets in texts: known ones, and what looks like a key or follows a word such as `password`."""

import re

SHORTEST_SECRET = 8
"""Shorter values are not masked: no key is that short, and masking "test" would make the log unreadable."""

MASK = "[hidden]"

_secrets: set[str] = set()  # the keys that this process uses: a few

_KEYED = re.compile(
    r"""(?ix)
    (?P<key>
        (?: (?: (?:api|access|private) [_-]? key | authorization | secret | passw(?:or)?d | passphrase | cookie )
            [\w-]{0,30} | token )
        \\?["']? \s{0,20} [=:] \s{0,20} )
    (?: (?P<quote>\\?["']) [^\n]{0,8000}? (?P=quote)
      | (?P<before>\\?["']? (?: (?: bearer | basic | digest ) \s+ )? ) (?: (?<=cookie:\s) [^\n"']+ | [^\s"',;&\\]+ ) )"""
)
"""A word that names a secret, and what stands behind it. Every repetition is bounded: a line may have 16 MiB."""

_SHAPED = re.compile(
    r"""(?x) \b (?:
        (?: zot_ | sk- | github_pat_ | gh[opsu]_ | glpat- | xox[abprs]- ) [\w-]{16,}
      | AIza [\w-]{30,} | (?:AKIA|ASIA) [A-Z0-9]{16} | \d{8,12} : [\w-]{35}
      | (?<!-) eyJ [\w-]{10,} \. [\w-]{10,} \. [\w-]+ )
    | (?<=://) [^\s/@"']{1,500} (?=@)"""
)
"""What looks like a key wherever it stands: a token of ours, those of vendors and of hosts of repositories, AWS's, a
Telegram bot's, a signed JSON token; and what stands before the host in a URL. What may go on without an end matches, or
begins only where nothing like it stands before: else each place of a line would be read to the end of the line."""


def hide(secret: str) -> None:
    """Mask `secret` in the log from now on, wherever it occurs."""
    if len(secret) >= SHORTEST_SECRET:
        _secrets.add(secret)


def masked(text: str) -> str:
    """Return `text` with secrets masked: known ones, keys by their form, and values after words such as `api_key=`."""
    for secret in sorted(_secrets, key=len, reverse=True):  # a secret may be a part of another one
        text = text.replace(secret, MASK)
    return _SHAPED.sub(MASK, _KEYED.sub(_without_value, text))


def _without_value(found: re.Match[str]) -> str:
    quote = found["quote"]
    return f"{found['key']}{quote}{MASK}{quote}" if quote else f"{found['key']}{found['before']}{MASK}"
