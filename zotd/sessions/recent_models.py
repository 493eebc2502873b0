"""Keeps the models that were used last over restarts of the daemon."""

import logging

from zotd.core.ports import StorageError
from zotd.core.records import Settings
from zotd.sessions.models import ModelChooser
from zotd.store.journal import StoredJournal

LAST_USED = "last_used"
"""The setting under which they are kept, one `vendor/model` a line, the latest first."""

log = logging.getLogger(__name__)


class RecentModels:
    """The models used last, in a `ModelChooser` and on disk."""

    def __init__(self, models: ModelChooser, journal: StoredJournal | None) -> None:
        """`journal`: None to store nothing."""
        self._models = models
        self._journal = journal

    async def recall(self) -> None:
        """Offer the stored models first; raises StorageError."""
        stored = await self._journal.settings.get(LAST_USED) if self._journal is not None else None
        for line in reversed((stored or "").splitlines()):
            provider, slash, model = line.partition("/")
            if slash:
                self._models.remember(provider, model)

    async def remember(self, settings: Settings) -> None:
        """Offer the model of these settings first from now on, and load what its requests need."""
        used = self._models.remember(settings.provider, settings.model)
        self._models.warm(settings.provider)
        if self._journal is not None:
            try:
                await self._journal.settings.set(
                    LAST_USED, "\n".join(f"{provider}/{model}" for provider, model in used)
                )
            except StorageError as error:  # the model is in use; the next session may begin with another one
                log.warning("the model used last was not stored: %s", error)
