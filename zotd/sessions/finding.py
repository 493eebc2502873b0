"""What a workspace has of extensions: its own where it is trusted, the user's, Python modules and MCP servers."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from zotd.exthost.discovery import Discovered, Shadowed, discover, project_extensions
from zotd.exthost.manifest import FILE, Manifest, ManifestError, Scope, read_manifest
from zotd.exthost.mcp import servers
from zotd.exthost.modules import tools_host
from zotd.wire.errors import Code, CommandError

MCP_FILE = "mcp.json"
PROJECT_MCP_FILE = ".mcp.json"

CHECK_S = 5.0
"""Longest wait for the manifest that a client names: local files take milliseconds, a dead network mount for ever."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where extensions are looked for."""

    home: Path
    """`$ZOT_HOME`."""
    python: str | None = None
    """The interpreter of Python modules: see `exthost.modules`."""
    has_daemon: bool = False
    """Extensions of scope `daemon` are somebody else's."""


def tool_directories(places: Places, cwd: Path) -> list[Path]:
    """Where Python modules for this workspace may be, also while nobody trusts it."""
    return [project_extensions(cwd) / "tools", places.home / "extensions" / "tools"]


def of_session(paths: Iterable[Path]) -> Discovered:
    """What `--ext` names. Blocks, as all of these do."""
    return discover(explicit=list(paths), cwd=None, home=None, is_trusted=_nobody)


async def check_named(paths: Sequence[str]) -> None:
    """Raise `CommandError` when one of the extensions that a client names by path has no usable manifest."""
    for path in paths:
        try:
            async with asyncio.timeout(CHECK_S):
                await asyncio.to_thread(read_manifest, _directory(Path(path)))
        except ManifestError as error:
            raise CommandError(Code.BAD_REQUEST, str(error)) from error
        except TimeoutError as error:
            sentence = f"the manifest of the extension {path} could not be read within {CHECK_S:g} s"
            raise CommandError(Code.TIMEOUT, sentence) from error


def _directory(path: Path) -> Path:
    return path.parent if path.name == FILE else path


def of_workspace(places: Places, cwd: Path, *, is_trusted: bool) -> Discovered:
    """What the sessions of a directory share."""
    found = discover(explicit=(), cwd=cwd, home=places.home, is_trusted=lambda _: is_trusted)
    if places.has_daemon:
        found.manifests = [one for one in found.manifests if not _is_for_all(one, places.home)]
    user, project = places.home / "extensions", project_extensions(cwd)
    modules = tools_host([project, user] if is_trusted else [user], cwd=cwd, python=places.python)
    if modules is not None:
        _add(found, [modules])
    for file in [cwd / PROJECT_MCP_FILE, places.home / MCP_FILE] if is_trusted else [places.home / MCP_FILE]:
        manifests, faults = servers(file, directory=cwd)
        _add(found, manifests)
        found.errors.update({file / str(about): sentence for about, sentence in faults.items()})
    found.manifests.sort(key=lambda manifest: manifest.directory.is_relative_to(user))  # as sessions rank them
    return found


def of_daemon(places: Places) -> Discovered:
    """What all workspaces share: the user's extensions of scope `daemon`."""
    found = discover(explicit=(), cwd=None, home=places.home, is_trusted=_nobody)
    for some in (found.manifests, found.disabled):
        some[:] = [one for one in some if _is_for_all(one, places.home)]
    found.shadowed.clear()
    found.errors.clear()  # each workspace tells them
    return found


def _add(found: Discovered, manifests: Iterable[Manifest]) -> None:
    """Behind what there is; of one name the first counts."""
    for manifest in manifests:
        earlier = next((one for one in found.manifests if one.name == manifest.name), None)
        if earlier is not None:
            found.shadowed.append(Shadowed(manifest, earlier.directory))
        else:
            (found.manifests if manifest.is_enabled else found.disabled).append(manifest)


def _is_for_all(manifest: Manifest, home: Path) -> bool:
    """A project's extension serves the project, whatever it says: nobody else has trusted it."""
    return manifest.scope is Scope.DAEMON and manifest.directory.is_relative_to(home)


def _nobody(_: Path) -> bool:
    return False
