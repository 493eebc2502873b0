"""Wall-clock time as it stands in records and events."""

import time
from datetime import UTC, datetime


def rfc3339(seconds: float | None = None) -> str:
    """`seconds` since the epoch (default: now) as RFC 3339 in UTC with milliseconds: `2026-11-21T20:11:18.919Z`."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
