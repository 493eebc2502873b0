"""The files that a server has open, without I/O: their texts count for it in place of those on the disk."""

from collections import OrderedDict

from msgspec import Struct

MOST_OPEN = 32
"""Files that are open at once. A server tells of errors in open files only, so the last ones that were edited stay open."""


class OpenFile(Struct, frozen=True):
    """A file as the server has it."""

    path: str
    language: str
    version: int
    text: str


class OpenFiles:
    """The open files of one server, the one that was used last at the end."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._version = 0

    @property
    def files(self) -> list[OpenFile]:
        """All of them, the one that was used last first."""
        return list(reversed(self._files.values()))

    def get(self, path: str) -> OpenFile | None:
        """Return the file as the server has it; None: it is not open."""
        return self._files.get(path)

    def put(self, path: str, language: str, text: str) -> OpenFile:
        """Note that the server gets this text, and return it with a version that no file had before."""
        self._version += 1
        found = self._files[path] = OpenFile(path, language, self._version, text)
        self._files.move_to_end(path)
        return found

    def surplus(self) -> list[OpenFile]:
        """Return the files that have to be closed, so that `MOST_OPEN` are left."""
        return list(self._files.values())[: max(0, len(self._files) - MOST_OPEN)]

    def drop(self, path: str) -> None:
        """Note that the file was closed."""
        self._files.pop(path, None)
