"""The models that one run may ask, in the order of preference: the session's own, then its fallbacks.

    own ──gives up──> fallback ──gives up──> next fallback ──gives up──> the best of them that may recover
     ^                   │ next step, and the own one has rested
     └───────────────────┘

A model with others beside it is given up after `fallback_patience_s`, or at once when retries cannot help. When all of
them have failed, the run waits for the best one whose failure may pass, with the patience that it would have had
without fallbacks. Each is asked at most twice in an outage: once with little patience, once with all of it.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import ClassVar

from msgspec import Struct

from zotd.core.outages import ModelOutages
from zotd.core.ports import Model
from zotd.core.retry import REPEATED, Failure, ModelError, RetryPolicy

PROBE = RetryPolicy(patience_s=0)
"""For a model that has failed lately: the first failure is enough, because another one works."""


class OpenedModel(Struct, frozen=True):
    """A model that a run can ask."""

    provider: str
    name: str
    """The vendor's name of it."""
    model: Model
    notes: Sequence[str] = ()
    """What the user should know when it is asked for the first time."""

    @property
    def label(self) -> str:
        """Vendor and model, for example `openai/gpt-5.5`."""
        return f"{self.provider}/{self.name}"


class OnlyModel(Struct, frozen=True):
    """The model of a run without fallbacks, which never asks for another one."""

    current: OpenedModel
    usual: RetryPolicy
    """How long its failures are retried."""
    fallbacks: ClassVar[int] = 0
    begins_with_choice: ClassVar[bool] = False


class Rung(Struct, frozen=True):
    """A model of a run, opened when it is needed."""

    label: str
    key: Hashable
    """What its outages are remembered by: vendor, model, address and account."""
    open: Callable[[], Awaitable[OpenedModel]]
    """Raises ModelError when the model cannot be used, for example because there is no key."""


class NextModel(Struct, frozen=True):
    """The model of the next requests; `ModelLadder.take` makes it the current one."""

    place: int
    opened: OpenedModel
    policy: RetryPolicy
    is_last: bool
    """All have failed, and this one is waited for."""


class ModelLadder:
    """Knows which of several models requests go to."""

    def __init__(
        self,
        own: OpenedModel,
        rungs: Sequence[Rung],
        *,
        patience: RetryPolicy,
        fallback_patience_s: float,
        first_rest_s: float,
        outages: ModelOutages[Hashable],
        clock: Callable[[], float],
    ) -> None:
        """`own`: the session's model, opened; it is the first of `rungs`.

        `patience`: how long the run would retry it without the others. `first_rest_s`: how long a model is not asked
        after its first failure. `outages` and `clock` are shared by all runs.
        """
        self.current = own
        """The model that requests go to."""
        self.usual = RetryPolicy(min(fallback_patience_s, patience.patience_s), patience.pause_s)
        """How long a model that has answered is retried before another one is asked."""
        self.fallbacks = len(rungs) - 1
        """How many models there are besides the own one."""
        self._patience = patience
        self._first_rest_s = first_rest_s
        self._rungs = rungs
        self._outages = outages
        self._clock = clock
        self._notes: list[str] = []
        self._place = 0
        self._opened = {0: own}
        self._unusable: set[int] = set()
        self._failed: dict[int, ModelError] = {}
        """The last failure of each model in this outage."""
        self._waited_for: set[int] = set()
        """Those that were asked with all patience."""

    @property
    def is_fallback(self) -> bool:
        """The current model is not the session's own."""
        return self._place > 0

    @property
    def begins_with_choice(self) -> bool:
        """The own model has failed lately, so `choose` is asked before the first step."""
        return self.reason is not None

    def take_notes(self) -> list[str]:
        """Return what the user should know about the models that were chosen or skipped since the last call."""
        notes, self._notes = self._notes, []
        return notes

    async def choose(self, error: ModelError | None) -> NextModel | None:
        """The model that is asked next, or None to stay with the current one.

        Args:
            error: why the current model is given up. None: a step begins, and a better model may be back.
        """
        if error is None:
            return await self._better()
        self._failed[self._place] = error
        if error.failure is Failure.CONTEXT:
            self._unusable.add(self._place)  # for this transcript; other runs may ask it
        else:
            key = self._rungs[self._place].key
            self._outages.failed(key, error, self._clock(), first_rest_s=self._first_rest_s)
        untried = [place for place in range(len(self._rungs)) if place not in self._failed]
        return await self._first_usable(self._by_rest(untried)) or self._last_resort()

    def take(self, choice: NextModel) -> None:
        """Ask this model from now on."""
        self._place, self.current = choice.place, choice.opened
        if choice.is_last:
            self._waited_for.add(choice.place)

    def answered(self) -> None:
        """The current model has answered in full: the outage is over."""
        self._failed.clear()
        self._waited_for.clear()
        self._outages.answered(self._rungs[self._place].key)

    @property
    def reason(self) -> ModelError | None:
        """Why the own model is not asked."""
        return self._outages.error(self._rungs[0].key)

    async def _better(self) -> NextModel | None:
        """The best model that is not resting: before the current one, or, at the beginning of a run, of all."""
        end = self._place or len(self._rungs)
        now = self._clock()
        return await self._first_usable([place for place in range(end) if not self._rests(place, now)])

    def _by_rest(self, places: Sequence[int]) -> list[int]:
        now = self._clock()
        return sorted(places, key=lambda place: (self._rests(place, now), place))

    def _rests(self, place: int, now: float) -> bool:
        return self._outages.rests(self._rungs[place].key, now)

    async def _first_usable(self, places: Sequence[int]) -> NextModel | None:
        for place in places:
            if place in self._unusable:
                continue
            opened = self._opened.get(place) or await self._open(place)
            if opened is not None:
                is_suspect = self._outages.error(self._rungs[place].key) is not None
                return NextModel(place, opened, PROBE if is_suspect else self.usual, is_last=False)
        return None

    async def _open(self, place: int) -> OpenedModel | None:
        rung = self._rungs[place]
        try:
            opened = await rung.open()
        except ModelError as error:
            self._unusable.add(place)
            self._notes.append(f"the fallback {rung.label} is skipped: {error.sentence}")
            return None
        self._opened[place] = opened
        self._notes += opened.notes
        return opened

    def _last_resort(self) -> NextModel | None:
        """The best model whose failure may pass, with all the patience of the run."""
        for place in sorted(self._failed):
            if self._failed[place].failure in REPEATED and place not in self._waited_for:
                return NextModel(place, self._opened[place], self._patience, is_last=True)
        return None


ModelSource = OnlyModel | ModelLadder
