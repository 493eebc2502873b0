"""Running the author's functions: coroutines on one loop, plain functions in threads, and knowing what is unfinished.

A `Job` is one run of one function. It settles exactly once, with a value or an error, whatever happens first: the
function returns, it raises, it is cancelled, or the extension has to end.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple, Optional

from .hints import Function, is_coroutine_function
from .loop_type import Loop


class Cancelled(Exception):  # noqa: N818  an outcome, not a fault
    """The host does not want the answer any more."""
