"""The files of working directories, kept ready for completion: one index for all sessions of a directory.

    none ──(first use)──> listed beside ──> ready ──(next use, FRESH_S later)──> listed anew beside, answered from the old

Only the first request waits for a listing, and not for long.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from zotd.core.matching import Ranking
from zotd.workspace.file_listing import FileListing, listed

FRESH_S = 3.0
"""How long an index counts as new: less than a user needs to write a file and to complete its name."""

REST = 10
"""Times that a listing took, before the next one: a huge directory costs a tenth of a core while a user types."""

FIRST_S = 2.0
"""How long the first one waits for the index. 65,000 files take 0.5 s; who gets nothing asks with the next key."""

SLICE = 1_024
"""Paths that are compared before others have their turn on the event loop: 1 ms, and 10 ms where each is as long as can
be."""

FOLDER_CHARS = 8 * 1024 * 1024
"""Most characters of the paths of directories; 65,000 files have 0.5 MiB of them. A few forged paths with a thousand directories each
would be gigabytes."""

MAX_ITEMS = 50
"""Most items of one answer: more than a screen shows."""

MAX_DIRECTORIES = 8
"""Indices in memory, 10 MiB each for 65,000 files, and three times that while one is made; the ones used last."""

KEPT_S = 600.0
"""How long an unused index is kept."""


class PathIndex(Struct, frozen=True):
    """The paths of one directory as `core.matching` wants them, shorter ones first, directories among them."""

    paths: Sequence[str]
    folded: Sequence[str]
    digest: bytes
    """Digest of the listing that it was built from."""
    is_cut: bool

    @classmethod
    def of(cls, listing: FileListing) -> "PathIndex":
        """Takes 0.2 s for 65,000 paths, in which a thread never keeps the interpreter to itself for long."""
        paths = [f"/{path}" for path in _with_folders(listing.paths)]
        by_length: dict[int, list[str]] = {}
        for path in paths:
            by_length.setdefault(len(path), []).append(path)
        # One sort of everything would not let the event loop in for 50 ms.
        paths = [path for length in sorted(by_length) for path in sorted(by_length[length])]
        folded = [path if (lower := path.casefold()) == path else lower for path in paths]  # most share their memory
        return cls(paths, folded, listing.digest, listing.is_cut)


class _Directory:
    """What is known of one directory."""

    def __init__(self) -> None:
        self.index: PathIndex | None = None
        self.is_being_listed = False
        self.is_ready = asyncio.Event()
        """It was listed once, or could not be."""
        self.due = 0.0
        """When it has to be listed anew."""


class Files:
    """The indices of all directories."""

    def __init__(
        self, spawn: Callable[[str, Coroutine[object, object, None]], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`spawn` starts a named task that outlives its caller; `now` gives seconds, and never goes back."""
        self._spawn = spawn
        self._now = now
        self._directories: OrderedDict[str, _Directory] = OrderedDict()
        self._cleaning: asyncio.TimerHandle | None = None
        self._comparing = asyncio.Lock()
        """Side by side, twenty clients would keep the event loop for twenty slices at a time."""

    async def find(self, cwd: str, env: Mapping[str, str], typed: str) -> tuple[list[str], bool]:
        """The paths below `cwd` that fit best, `MAX_ITEMS` at most; and whether there may be others.

        `env`: see `listing.listed`. Waits `FIRST_S` at most; safe to cancel.
        """
        directory = self._use(cwd, env)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                await directory.is_ready.wait()
        index = directory.index
        if index is None:
            return [], True
        ranking = Ranking(typed, MAX_ITEMS)
        async with self._comparing:
            for start in range(0, len(index.paths), SLICE):
                end = start + SLICE
                ranking.look(zip(index.paths[start:end], index.folded[start:end], strict=True))
                await asyncio.sleep(0)
        return [path[1:] for path in ranking.best()], index.is_cut

    def _use(self, cwd: str, env: Mapping[str, str]) -> _Directory:
        directory = self._directories.setdefault(cwd, _Directory())
        self._directories.move_to_end(cwd)
        if len(self._directories) > MAX_DIRECTORIES:
            self._directories.popitem(last=False)
        if self._cleaning is not None:
            self._cleaning.cancel()
        self._cleaning = asyncio.get_running_loop().call_later(KEPT_S, self._directories.clear)
        if not directory.is_being_listed and self._now() >= directory.due:
            directory.is_being_listed = True
            self._spawn(f"list {cwd}", self._list(directory, cwd, env))
        return directory

    async def _list(self, directory: _Directory, cwd: str, env: Mapping[str, str]) -> None:
        began = self._now()
        try:
            listing = await listed(cwd, env, directory.index.digest if directory.index else b"")
            if listing is not None:
                directory.index = await asyncio.to_thread(PathIndex.of, listing)
        finally:
            directory.due = self._now() + max(FRESH_S, REST * (self._now() - began))
            directory.is_being_listed = False
            directory.is_ready.set()


def _with_folders(paths: Iterable[str]) -> Iterable[str]:
    """The paths, and the directories that they are in, each once."""
    known: set[str] = set()
    left = FOLDER_CHARS
    for path in paths:
        if not path.endswith("/"):
            yield path
        at = path.rfind("/") + 1
        while at and left > 0 and (folder := path[:at]) not in known:
            known.add(folder)
            left -= at
            yield folder
            at = path.rfind("/", 0, at - 1) + 1
