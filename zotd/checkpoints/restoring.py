"""Carries out the journal of a restore, now or after an interruption.

for each change:  the path is as before  ->  replaced or removed
                  it is as after         ->  done already
                  else                   ->  the user changed it; it stays
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.journal import RestoreJournal
from zotd.checkpoints.outcome import Kept, WhyKept
from zotd.checkpoints.placing import FilesBelow
from zotd.checkpoints.plan import PathChange
from zotd.checkpoints.shadow import ShadowRepository

CHUNK_BYTES = 8 * 1024 * 1024
"""About how much content is read from the shadow repository at a time."""

POINTS = ("draft", "placed", "removed")
"""Where a restore calls its probe, for each change; `checkpoints.POINTS` has the others."""


class Restorer:
    """Makes the changes of one restore; its caller holds the lock of the workspace."""

    def __init__(self, repository: ShadowRepository, journal: RestoreJournal, probe: Callable[[str], None]) -> None:
        """Raises CheckpointError if a content that the restore needs is missing: then nothing must be changed."""
        self._repository = repository
        self._journal = journal
        self._probe = probe
        wanted = {one.after.blob for one in journal.changes if one.after is not None}
        self._sizes = _sizes(repository, sorted(wanted))
        self.restored: list[str] = []
        """Paths that are now in the state to return to."""
        self.kept: list[Kept] = []
        """Paths that were left alone."""

    def run(self) -> None:
        """Make all changes. `kept` has the paths that failed; raises CheckpointError if the workspace is gone."""
        try:
            files = FilesBelow(self._repository.workspace)
        except OSError as error:
            raise CheckpointError(f"{self._repository.workspace} cannot be opened: {error.strerror}") from error
        try:
            numbered = list(enumerate(self._journal.changes))
            for number, change in numbered:
                if change.after is None:
                    self._make(files, number, change, b"")
            for chunk in self._chunks([(number, change) for number, change in numbered if change.after is not None]):
                contents = _contents(self._repository, [change.after.blob for _, change in chunk if change.after])
                for number, change in chunk:
                    assert change.after is not None
                    self._make(files, number, change, contents[change.after.blob])
        finally:
            files.close()

    def _chunks(self, changes: Sequence[tuple[int, PathChange]]) -> Iterator[list[tuple[int, PathChange]]]:
        chunk: list[tuple[int, PathChange]] = []
        size = 0
        for number, change in changes:
            assert change.after is not None
            chunk.append((number, change))
            size += self._sizes[change.after.blob]
            if size >= CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _make(self, files: FilesBelow, number: int, change: PathChange, content: bytes) -> None:
        draft = f"{self._journal.draft}{number}"
        try:
            present = files.state(change.path)
            if present == change.after:
                files.discard_draft(change.path, draft)
                self.restored.append(change.path)
            elif present != change.before:
                files.discard_draft(change.path, draft)
                why = WhyKept.IN_THE_WAY if change.before is None else WhyKept.CHANGED
                self.kept.append(Kept(change.path, why))
            elif change.after is None:
                files.remove(change.path)
                self._probe("removed")
                self.restored.append(change.path)
            else:
                files.write(change.path, change.after.mode, content, draft=draft, written=lambda: self._probe("draft"))
                self._probe("placed")
                self.restored.append(change.path)
        except OSError as error:
            self.kept.append(Kept(change.path, WhyKept.FAILED, (error.strerror or str(error)).lower()))


def _sizes(repository: ShadowRepository, blobs: Sequence[str]) -> Mapping[str, int]:
    if not blobs:
        return {}
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    sizes = {}
    for line in repository.run("cat-file", "--batch-check", "--buffer", stdin=asked).decode().splitlines():
        name, kind, *size = line.split(" ")
        if kind != "blob":
            raise CheckpointError(f"the content {name} of the checkpoint is lost; nothing was changed")
        sizes[name] = int(size[0])
    return sizes


def _contents(repository: ShadowRepository, blobs: Iterable[str]) -> Mapping[str, bytes]:
    wanted = sorted(set(blobs))
    asked = "".join(f"{blob}\n" for blob in wanted).encode()
    printed = memoryview(repository.run("cat-file", "--batch", "--buffer", stdin=asked))
    contents, at = {}, 0
    for blob in wanted:
        end = at + printed[at : at + 200].tobytes().index(b"\n")
        name, kind, size = printed[at:end].tobytes().decode().split(" ")
        if name != blob or kind != "blob":
            raise CheckpointError(f"the content {blob} of the checkpoint is lost")
        contents[blob] = printed[end + 1 : end + 1 + int(size)].tobytes()
        at = end + 2 + int(size)
    return contents


def draft_prefix() -> str:
    """Return how the names of a restore's temporary files begin; no file of a user has such a name."""
    return f".zot-restore-{os.urandom(6).hex()}-"
