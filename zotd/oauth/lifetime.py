"""When a token is renewed."""

from zotd.oauth.protocol import TokenSet

MARGIN_S = 120.0
"""How long before its end a token is renewed: longer than a request takes to begin, clocks differ, and an authorization
server may be away for a moment."""

MARGIN_PART = 0.25
"""The same as a part of its lifetime, for tokens that live shorter."""


def ends_soon(tokens: TokenSet, now: float) -> bool:
    """Whether the access token is to be renewed before the next request; `now` in seconds since 1970."""
    if tokens.expires_at is None:
        return False
    lifetime_s = max(0.0, tokens.expires_at - tokens.obtained_at)
    return now >= tokens.expires_at - min(MARGIN_S, MARGIN_PART * lifetime_s)
