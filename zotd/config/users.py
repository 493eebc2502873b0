"""Schema of `[users.NAME]`: what users may have and spend (`docs/users.md`)."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

ALL = "*"
"""The table for users without one of their own."""

MOST_USD = 1e9
"""Largest limit, so that a typing error such as `nan` or `inf` is none; without a limit, leave it out."""

Usd = Annotated[float, Meta(ge=0, le=MOST_USD)]
UserName = Annotated[
    str, Meta(pattern=r"^(\*|[A-Za-z0-9._@-]{1,64}|channel:[^:\x00-\x1f\x7f]{1,64}:[^\x00-\x1f\x7f]{1,256})\Z")
]


class UserQuota(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[users.NAME]`. Unknown fields are errors: a misspelt limit would otherwise limit nothing."""

    usd_per_day: Usd | None = None
    sessions: Annotated[int, Meta(ge=0)] | None = None


UserQuotas = Annotated[
    dict[UserName, UserQuota],
    Meta(title="[users.NAME] tables with usd_per_day (a number of at least 0) or sessions (an integer of at least 0)"),
]

UNLIMITED = UserQuota()


def quota_of(quotas: Mapping[str, UserQuota], user: str) -> UserQuota:
    """Return what limits this user: a table of its own, else that for all; nothing limits an empty name."""
    return quotas.get(user) or quotas.get(ALL) or UNLIMITED if user else UNLIMITED
