"""What an editor has to do with one session."""

from dataclasses import dataclass

from zotd.bridges.acp.servers import EditorServers
from zotd.wire.acp import FileSystem


@dataclass(frozen=True, slots=True)
class EditorSide:
    """What an editor has to do with a session."""

    cwd: str
    """The working directory, as the editor calls it."""
    servers: EditorServers
    """MCP servers that it brings along."""
    fs: FileSystem
    """What it does with files."""
    shows_notices: bool
    """It can show notices."""
    has_forms: bool
    """It can show forms."""
    shows_terminals: bool
    """It shows terminals that we fill."""
    has_terminals: bool
    """It runs commands in terminals."""
