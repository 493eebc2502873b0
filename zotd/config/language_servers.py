"""Schema of `[diagnostics]`: language servers that are asked after edits (`docs/diagnostics.md`).

The strings below the fields are their documentation, as in `zotd.config.sections`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from zotd.config.kinds import Command, Fields, Flag, Names, Pause

Languages = Annotated[dict[str, str], Meta(title='a table of suffixes with language ids, such as { ".lua" = "lua" }')]


class LanguageServerSection(Struct, frozen=True, kw_only=True):
    """`[diagnostics.servers.<name>]`: changes a language server of the catalog, or adds one."""

    enabled: Flag | None = None
    """`false`: do not use this server."""

    command: Command | None = None
    """Program and arguments with which it speaks on its standard input and output, for example
    `["lua-language-server"]`. The program is looked for in the project's `.venv` and `node_modules`, then in `PATH`."""

    languages: Languages | None = None
    """Suffixes of the files it is asked about, each with the language's id: `{ ".lua" = "lua" }`."""

    roots: Names | None = None
    """Files that mark the root of a project, such as `["go.mod"]`. Without one the working directory is the root."""

    settings: Fields | None = None
    """What the server gets when it asks for its configuration, as a tree of sections."""

    options: Fields | None = None
    """`initializationOptions` of the server."""

    writes: Flag | None = None
    """Let the server change files of the workspace, such as those of a build. Default: no."""

    def __post_init__(self) -> None:
        for suffix in self.languages or ():
            if not suffix.startswith(".") or "/" in suffix:
                raise ValueError(f'diagnostics.servers: languages has "{suffix}", but a suffix begins with a dot')


class DiagnosticsSection(Struct, frozen=True, kw_only=True):
    """`[diagnostics]`."""

    enabled: Flag = True
    """Tell the model the errors that an edit has caused, as the language servers see them that are installed. Only in
    trusted workspaces. See diagnostics.md."""

    wait_s: Pause = 2.0
    """How long the result of an edit waits for servers. What they find later comes with the next edit. After three late
    answers in a row edits do not wait for a server, until it has answered in this time again."""

    servers: dict[str, LanguageServerSection] = {}
