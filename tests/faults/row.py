"""What the modules of this directory share: how much of a check is run, and the line that comes out of it.

A check is a module with `async def run(options: Options) -> Row`. `python -m tests.faults` runs all of them and prints
the table of `docs/reliability.md`; the test of a module runs a small `share` of it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


def silent(line: str) -> None:
    """Say nothing of the progress."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a check is run with."""

    seed: int
    """Of everything in it that is random."""
    share: float = 1.0
    """How much of the table's count is done: 1 is all of it, what is tested with every change is a hundredth or so."""
    kills: int | None = None
    """How often `kills` kills at a random instant; None: a thousand times, of which `share` is done."""
    resume: str | None = None
    """How sessions go on after a kill, one of `homes.RESUME`; None: each way in its turn."""
    say: Callable[[str], None] = silent
    """Told how far the check is, a line at a time."""

    def of(self, count: int) -> int:
        """The share of `count` that is to be done, at least one."""
        return max(1, round(count * self.share))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    check: str
    """What is done, with the counts."""
    must_give: str
    got: str
    """The same, as it came out."""
    ok: bool
    command: str
    """What does it again, with the same seed."""
    seconds: float
    seed: int | None = None
    """None when nothing in the check is random."""

    def line(self) -> str:
        """As a row of a Markdown table."""
        verdict = "yes" if self.ok else "**no**"
        seed = "-" if self.seed is None else str(self.seed)
        cells = [self.check, self.must_give, self.got, verdict, f"`{self.command}`", f"{self.seconds:.0f}", seed]
        return f"| {' | '.join(cells)} |"


def skipped(check: str, lacking: str, command: str) -> Row:
    """Return the line of a check for which something is `lacking` here."""
    return Row(check=check, must_give="", got=f"skipped: {lacking}", ok=True, command=command, seconds=0)


Check = Callable[[Options], Awaitable[Row]]

HEAD = "| check | must give | got | met | command | s | seed |\n|---|---|---|---|---|---|---|"
