"""Makes a directory that is not there with the files of a session from another place."""

import os
import shutil
import threading
from collections.abc import Mapping

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.folders import folder_of
from zotd.checkpoints.outcome import Brought
from zotd.checkpoints.shadow import EMPTY_TREE, ShadowRepository
from zotd.checkpoints.shared_repository import HISTORY, SharedRepository
from zotd.checkpoints.synced import SyncedCheckpoints
from zotd.checkpoints.trees import differences
from zotd.checkpoints.user_history import make_repository


class MissingWorkspace(SyncedCheckpoints):
    """A workspace that is not there, or is an empty directory, and is made from a copy."""

    def __init__(
        self, workspace: str, home: str, env: Mapping[str, str], session: str, *, abandoned: threading.Event
    ) -> None:
        """The files are put together in a directory beside it. Raises CheckpointError if that cannot be made."""
        self._target = os.path.realpath(workspace)
        draft = f"{os.path.dirname(self._target)}/.zot-arrival-{session}"
        try:
            shutil.rmtree(draft, ignore_errors=True)  # of an arrival that was interrupted
            os.makedirs(draft)
        except OSError as error:
            raise CheckpointError(f"{workspace} cannot be made: {(error.strerror or str(error)).lower()}") from error
        super().__init__(draft, home, env, abandoned=abandoned)
        self._draft = draft
        # The records are those of the directory to be made.
        self.repository = ShadowRepository(folder_of(home, self._target), draft, self.repository.program, abandoned)

    def discard(self) -> None:
        """Remove what is not needed any more, or make nothing."""
        shutil.rmtree(self._draft, ignore_errors=True)

    def appear(self, found: str, session: str, shared: SharedRepository) -> Brought:
        """Make the directory with the files of the copy, as a git repository if its history was pushed."""
        copy = self._fetched(found, session, shared)
        with self._locked():
            self.repository.write("workspace", f"{self._target}\n")
            paths = sorted(differences(self.repository, EMPTY_TREE, copy.tree))
            there = copy.facts.checked_out
            has_commits = not there.commit or make_repository(self.repository, shared, session, there)
            index = {"GIT_INDEX_FILE": os.path.join(self.repository.folder, "arrival.index")}
            self.repository.run("read-tree", copy.tree, variables=index)
            self.repository.run("checkout-index", "--all", "--force", variables=index)
            os.unlink(index["GIT_INDEX_FILE"])
            # First: else a directory that a crash has left here would not be known as the session's.
            self.known.add(copy)
            os.rename(self._draft, self._target)
            is_own = copy.facts.maker == self.known.own_name()
        missing = f"its git history is not there, because {HISTORY}/{session} of {shared.url} does not have it"
        return Brought(copy.facts.place, copy.facts.made, paths, commits="" if has_commits else missing, is_own=is_own)
