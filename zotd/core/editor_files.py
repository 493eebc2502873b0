"""The port to files that a person may have open in an editor."""

from typing import Protocol


class EditorFiles(Protocol):
    """Files as an editor has them, with changes that are not saved. What fails is told to people, and never raised."""

    async def read(self, path: str) -> str | None:
        """Return the text of the file with this real path; None: the editor does not say, so the disk counts."""
        ...

    async def write(self, path: str, text: str) -> bool:
        """Have the editor write the file; return whether it says that it has. It may not have saved it."""
        ...

    def agreed(self, path: str, text: str) -> None:
        """Remember that the editor and the disk both have this text."""
        ...

    def has_agreed(self, path: str, text: str) -> bool:
        """Return whether this is the text that both had last; if the disk has another now, the editor has not noticed."""
        ...
