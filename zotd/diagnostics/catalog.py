"""The language servers that are used where they are installed. `[diagnostics.servers]` changes them and adds others."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from zotd.config.language_servers import DiagnosticsSection

PYTHON = {".py": "python", ".pyi": "python"}

JAVASCRIPT = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}


TYPESCRIPT_ROOTS = ("tsconfig.json", "jsconfig.json", "package.json")


class ServerRow(Struct, frozen=True, kw_only=True):
    """One language server, as data."""

    name: str
    command: tuple[str, ...]
    """Program and arguments. It is looked for in the project's environments, then in PATH."""
    languages: Mapping[str, str]
    """Suffixes of its files, each with the language's id in the protocol."""
    roots: Sequence[str] = ()
    """Files that a root has. The root of a file is the nearest directory above it, in the workspace, with one of them."""
    settings: Mapping[str, object] = {}
    """What the server is told when it asks for its configuration, as a tree of sections."""
    options: Mapping[str, object] = {}
    """`initializationOptions`."""
    writes: bool = False
    """It may change files of the workspace, such as those of a build."""
    python_at: str = ""
    """Section of `settings` that gets the project's interpreter as `pythonPath`; empty: none."""
    asks_tsserver: bool = False
    """Errors are asked for as `zotd.diagnostics.tsserver` does."""
    npm_package: tuple[str, str] | None = None
    """A package of npm, and a file in it without which the server is of no use. The project's own counts, else the one beside
    the program."""


CATALOG = (
    ServerRow(
        name="pyright",
        command=("pyright-langserver", "--stdio"),
        languages=PYTHON,
        roots=("pyrightconfig.json", "pyproject.toml", "setup.py", "setup.cfg"),
        settings={"python": {"analysis": {"diagnosticMode": "openFilesOnly"}}},
        python_at="python",
    ),
    ServerRow(
        name="ruff",
        command=("ruff", "server"),
        languages=PYTHON,
        roots=("ruff.toml", ".ruff.toml", "pyproject.toml"),
    ),
    ServerRow(
        name="typescript",
        command=("tsc", "--lsp", "--stdio"),
        languages=JAVASCRIPT,
        roots=TYPESCRIPT_ROOTS,
        npm_package=("typescript", "lib/getExePath.js"),  # from version 7 on
    ),
    ServerRow(
        name="typescript-language-server",
        command=("typescript-language-server", "--stdio"),
        languages=JAVASCRIPT,
        roots=TYPESCRIPT_ROOTS,
        asks_tsserver=True,
        npm_package=("typescript", "lib/tsserver.js"),  # up to version 6
        # What it would download in the background is not reachable from its jail.
        options={"disableAutomaticTypingAcquisition": True},
    ),
    ServerRow(
        name="gopls",
        command=("gopls",),
        languages={".go": "go"},
        roots=("go.work", "go.mod"),
        settings={"gopls": {"pullDiagnostics": True}},
        options={"pullDiagnostics": True},
    ),
    ServerRow(
        name="rust-analyzer",
        command=("rust-analyzer",),
        languages={".rs": "rust"},
        roots=("Cargo.toml",),
        # `cargo check` writes to `target`.
        writes=True,
    ),
)


def rows(section: DiagnosticsSection) -> tuple[ServerRow, ...]:
    """Return the servers to use as the settings say: those of the catalog, changed, and the user's own."""
    named = {row.name: row for row in CATALOG}
    for name, wanted in section.servers.items():
        known = named.pop(name, None)
        command = wanted.command or (known.command if known else ())
        languages = wanted.languages or (known.languages if known else {})
        if wanted.enabled is False or not command or not languages:
            continue
        named[name] = ServerRow(
            name=name,
            command=tuple(command),
            languages=languages,
            roots=known.roots if wanted.roots is None and known else wanted.roots or (),
            settings=merged(known.settings if known else {}, wanted.settings or {}),
            options=merged(known.options if known else {}, wanted.options or {}),
            writes=known is not None and known.writes if wanted.writes is None else wanted.writes,
            python_at=known.python_at if known else "",
            asks_tsserver=known is not None and known.asks_tsserver,
            npm_package=known.npm_package if known and not wanted.command else None,
        )
    return tuple(named.values())


def merged(one: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """Return the tree `one` with the values of `other` in place of its own."""
    found = dict(one)
    for name, value in other.items():
        known = found.get(name)
        found[name] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found
