"""Wall-clock time as it stands in records and events."""

import time
from functools import lru_cache


def rfc3339(seconds: float | None = None) -> str:
    """`seconds` since the epoch (default: now) as RFC 3339 in UTC with milliseconds: `2026-11-21T20:11:18.919Z`."""
    milliseconds = int((time.time() if seconds is None else seconds) * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """The part that is the same for a whole second: a run asks for the time ten times in a few milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
