"""What a program says about tool calls, and the functions that say it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import msgspec

from zot.errors import OptionError
from zotd.embed.in_thread import in_thread
from zotd.sdk.hints import is_coroutine_function

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    args: Mapping[str, object] | None = None
    """Arguments to run it with instead of its own."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not run; the model reads the reason, and may try something else."""

    reason: str


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a decision about a tool call may depend on, beside its name and arguments."""

    id: str
    """The id of the call, as in its events."""
    preview: str
    """What the call would do, as text for people: a diff, a command line, or the arguments."""


CanUseTool = Callable[[str, dict[str, object], CallContext], Allow | Deny | Awaitable[Allow | Deny]]
"""Gets the tool's name, its arguments and the context."""


GuardFunction = Callable[[str, dict[str, object], CallContext], Allow | Deny | Awaitable[Allow | Deny | None] | None]
"""The same; None: nothing against it."""


def check_function(what: str, given: object) -> None:
    """Raise OptionError for what cannot be called."""
    if not callable(given):
        raise OptionError(f"{what} must be a function, not {given!r:.80}")


@dataclass(frozen=True, slots=True)
class CallCheck:
    """A function that decides about calls, and its time limit."""

    function: GuardFunction
    name: str
    """What the model is told when it fails."""
    within_s: float

    async def decision(self, tool: str, args: Mapping[str, object], context: CallContext) -> Allow | Deny | None:
        """Return what the function decides; a denial that says so if it fails or takes too long."""
        # A copy: what the function does to the arguments must not change the call.
        work = partial(self.function, tool, deepcopy(dict(args)), context)
        limit = asyncio.timeout(self.within_s)
        try:
            async with limit:
                found: object = work() if is_coroutine_function(self.function) else await in_thread(work)
                if isinstance(found, Awaitable):
                    found = await found
            return self._checked(found)
        except Exception as error:  # a check that fails must not let the call run
            if limit.expired():
                return Deny(f"{self.name} has not decided within {self.within_s:g} s")
            log.warning("%s failed for a call of %s", self.name, tool, exc_info=True)
            return Deny(f"the check of this call by {self.name} failed: {type(error).__name__}: {error}")

    def _checked(self, found: object) -> Allow | Deny | None:
        """Raise TypeError for what is no decision, or has arguments that JSON cannot express."""
        if found is None or isinstance(found, Deny):
            return found
        if not isinstance(found, Allow):
            raise TypeError(f"it returned {found!r:.80}, which is neither Allow() nor Deny(reason)")
        if found.args is None:
            return found
        return Allow(msgspec.json.decode(msgspec.json.encode(found.args), type=dict[str, object]))
