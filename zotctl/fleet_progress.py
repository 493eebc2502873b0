"""How far a batch is, on standard error, while a program waits for its results: a line that is rewritten on a terminal."""

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable

from zotctl import output
from zotd.client import colour, humanize
from zotd.client.blocking import Json
from zotd.client.columns import fitting
from zotd.client.fields import amount, number, text
from zotd.sanitize import one_line

TERMINAL_S = 2.0
"""Time between two looks at the daemon if they are shown on a terminal."""

LOOK_S = 20.0
"""The same without a terminal. A result is told at once, whatever this is."""

LINE_S = 60.0
"""Time between two lines where no line can be rewritten."""

ESTIMATED_FROM = 3
"""Results that must come in while the program waits before it says how long the others take."""

ENDS = ("done", "failed", "unknown", "cancelled")
"""States of results, in the order in which they are shown."""

CLEAR = "\r\x1b[K"


class BatchTally:
    """The results of a batch so far, in words. Times are given by the caller, in seconds."""

    def __init__(self, after: int) -> None:
        """`after`: this many results are skipped."""
        self._after = after
        self._place = after
        self._ends = Counter[str]()
        self._cost = 0.0
        self._fresh = 0
        self._since: float | None = None
        self._has_caught_up = False

    def add(self, result: Json) -> None:
        """Count a result of the daemon."""
        self._place = number(result, "place")
        self._ends[text(result, "state")] += 1
        self._cost += amount(result, "cost_usd")
        self._fresh += self._has_caught_up

    def parts(self, page: Json, now: float) -> list[str]:
        """Return what to tell, after the results of this answer of the daemon were counted."""
        if self._since is None:
            self._since = now
        if not self._has_caught_up and self._place >= number(page, "ended"):
            self._since, self._has_caught_up = now, True  # what came before says nothing of how long the others take
        left, running = number(page, "left"), number(page, "running")
        counts = [(self._after, "before"), *((self._ends[end], end) for end in ENDS)]
        counts += [(running, "running"), (max(left - running, 0), "waiting")]
        found = [f"{count:,} {state}" for count, state in counts if count or state == "done"]
        if self._cost:
            found.append(humanize.money(self._cost))
        passed = now - self._since
        if self._fresh >= ESTIMATED_FROM:
            found.append(f"about {humanize.duration(math.ceil(passed * left / self._fresh))} left")
        else:
            found.append(f"{humanize.duration(passed)} so far")
        return found


class Progress:
    """Tells on standard error how far a batch is."""

    def __init__(
        self,
        program: str,
        *,
        after: int = 0,
        quiet: bool = False,
        lines: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`after`: this many results are skipped. `quiet`: tell nothing. `lines`: without a terminal, a line a minute."""
        self._program = program
        self._clock = clock
        self._tally = BatchTally(after)
        # A terminal without capabilities cannot rewrite a line.
        self._rewrites = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._writes = lines and not quiet and not self._rewrites
        self._next_s = clock() + LINE_S
        self._is_shown = False
        self.look_s = TERMINAL_S if self._rewrites else LOOK_S
        """How long the daemon may wait for a result before it answers."""

    def add(self, result: Json) -> None:
        """Count a result. Call it before the result is printed, which may be on the same terminal."""
        self.hide()
        self._tally.add(result)

    def tell(self, page: Json) -> None:
        """Tell how far the batch is, by an answer of the daemon whose results were added."""
        now = self._clock()
        parts = self._tally.parts(page, now)
        if not number(page, "left"):
            return
        if self._rewrites:
            self._show(parts)
        elif self._writes and now >= self._next_s:
            self._next_s = now + LINE_S
            sys.stderr.write(one_line(f"{self._program}: {', '.join(parts)}") + "\n")
            sys.stderr.flush()

    def hide(self) -> None:
        """Remove what is shown, so that something else can be printed."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _show(self, parts: list[str]) -> None:
        line = f"{self._program}: {', '.join(parts)}"
        width = os.get_terminal_size(sys.stderr.fileno()).columns or len(line) + 1
        bad = [part for part in parts if part.endswith((" failed", " unknown"))]
        if len(line) < width and bad and output.has_colours(sys.stderr.fileno()):
            before, first, behind = line.partition(", ".join(bad))
            sys.stderr.write(CLEAR + one_line(before) + colour.painted(one_line(first), colour.RED) + one_line(behind))
        else:
            sys.stderr.write(CLEAR + one_line(fitting(line, width - 1)))
        sys.stderr.flush()
        self._is_shown = True
