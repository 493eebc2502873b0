"""What the jobs of all sessions have in common: their limits, and what ends their processes."""

from collections.abc import Sequence

from msgspec import Struct

from zotd.config.current import CurrentConfig
from zotd.config.sections import JobsSection
from zotd.core.jobs import NONE_HERE, JobError
from zotd.process.orphan_reaper import OrphanReaper

TOO_MANY = "{limit} jobs run already ({names}): stop one first (the limit is jobs.at_once in config.toml)"

TOO_MANY_KEPT = (
    "as many kept jobs run as there may be ({names}): stop one first (the limit is jobs.kept_at_once in config.toml)"
)

NONE_KEPT = "no job can be kept here (jobs.kept_at_once in config.toml is 0): leave keep out"

NOT_STORED = "no job can be kept in a session that is not stored: leave keep out"


class JobGround(Struct, frozen=True):
    """What the jobs of all sessions have in common."""

    reaper: OrphanReaper | None
    """Ends what jobs leave behind; None: there can be no jobs."""
    config: CurrentConfig

    def admitted(self, busy: Sequence[str]) -> tuple[JobsSection, OrphanReaper]:
        """Return the limits; raises JobError if there can be no job, or no more beside those of the session that run (`busy`)."""
        limits = self.config.value.jobs
        if self.reaper is None or not limits.at_once:
            raise JobError(NONE_HERE)
        if len(busy) >= limits.at_once:
            raise JobError(TOO_MANY.format(limit=limits.at_once, names=", ".join(busy)))
        return limits, self.reaper

    def admit_kept(self, kept: Sequence[str], *, is_stored: bool) -> None:
        """Raise JobError if no job, or no more beside these, may go on when the session ends; `is_stored`: the session is."""
        limit = self.config.value.jobs.kept_at_once
        if not is_stored:
            raise JobError(NOT_STORED)
        if len(kept) >= limit:
            raise JobError(TOO_MANY_KEPT.format(names=", ".join(kept)) if limit else NONE_KEPT)
