"""What a workspace has of extensions: its own where it is trusted, the user's, Python modules and MCP servers."""

import asyncio
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from zotd.contributions.trust import WorkspaceTrust
from zotd.exthost import data, hooks, saved
from zotd.exthost.changes import tree
from zotd.exthost.discovery import Discovered, Shadowed, discover, is_directory, project_extensions, read_extension
from zotd.exthost.jails import rights
from zotd.exthost.manifest import FILE, Manifest, ManifestError, ProcessScope, read_manifest
from zotd.exthost.mcp import LOGINS, entries, servers
from zotd.exthost.modules import Guarded, inside, interpreter, tools_host
from zotd.wire.errors import Code, CommandError
from zotd.wire.mcp import McpServer
from zotd.workspace.command_files import COMMANDS, shell_runs

MCP_FILE = "mcp.json"
PROJECT_MCP_FILE = ".mcp.json"

CHECK_S = 5.0
"""Longest wait for the manifest that a client names: local files take milliseconds, a dead network mount for ever."""

CLAUDE_COMMANDS = f".claude/{COMMANDS}"
"""Slash commands that a project has for another agent."""

MAX_COMMANDS, COMMAND_CHARS = 200, 400
"""Lines, and their length, that a person is shown of what would be started."""

MAX_PROGRAMS = 200
"""Programs of a workspace that are part of what is trusted; what names more than this is not looked at further."""


class ExtensionSources(Struct, frozen=True):
    """Where extensions are looked for."""

    home: Path
    """`$ZOT_HOME`."""
    python: str | None = None
    """The interpreter of Python modules: see `exthost.modules`."""
    has_daemon: bool = False
    """Extensions of scope `daemon` belong to another host."""
    claude_settings: Path | None = None
    """The settings of Claude Code that the user wants hooks from; None: none."""


def tool_directories(places: ExtensionSources, cwd: Path) -> list[Path]:
    """Where Python modules for this workspace may be, whether it is trusted or not."""
    return [project_extensions(cwd) / "tools", places.home / "extensions" / "tools"]


def watched(places: ExtensionSources, cwd: Path) -> dict[Path, Collection[str] | None]:
    """Directories where a change may concern the code of a workspace, for `exthost.changes`. Blocks."""
    dot = cwd / ".zot"
    found: dict[Path, Collection[str] | None] = {
        cwd: {".zot", ".claude", PROJECT_MCP_FILE},
        cwd / ".claude": {"settings.json", "settings.local.json", "hooks", "commands"},
    }
    for scripts in (*hooks.SCRIPTS, CLAUDE_COMMANDS):
        found.update(dict.fromkeys(tree(cwd / scripts)))
    if os.path.realpath(dot) != os.path.realpath(places.home):
        found[dot] = {"agents", "commands", "extensions", "skills", "config.toml", "hooks.json", "hooks"}
        for name in ("agents", "commands", "extensions", "skills"):
            found.update(dict.fromkeys(tree(dot / name)))
    for program in programs(places.python, cwd):
        path = cwd / program
        names = found.get(path.parent, set())
        found[path.parent] = None if names is None else {*names, path.name}
    return found


def programs(python: str | None, cwd: Path) -> list[str]:
    """Files of a workspace that would be started besides what lies in the places of its code, as paths from it.

    They are the interpreter that `ext.python` names, and what `.mcp.json` and the manifests of its extensions name as
    a command or an argument; its files of hooks, what these name, and the directories of their scripts; and the slash
    commands of `.claude/commands`, if one of them runs shell commands. Blocks for some file reads.
    """
    of_hooks = list(hooks.hook_programs(cwd))
    named = [*_interpreter(python, cwd), *_of_servers(cwd), *_of_manifests(cwd), *of_hooks]
    paths = (inside(path, cwd) for path in named[:MAX_PROGRAMS])
    found = {path for path in paths if path is not None and os.path.isfile(cwd / path)}  # noqa: PTH113
    if of_hooks:
        found.update(scripts for scripts in hooks.SCRIPTS if is_directory(cwd / scripts))
    if _runs_of_commands(cwd, CLAUDE_COMMANDS):
        found.add(CLAUDE_COMMANDS)
    return sorted(found)


def commands(python: str | None, cwd: Path) -> list[str]:
    """What the code of a workspace would start, as lines for a person: where it is said, and the command. Blocks."""
    found: list[str] = []
    for name, server in entries(cwd / PROJECT_MCP_FILE).items():
        if isinstance(server, McpServer):
            started = f"{shlex.join([server.command, *server.args])} ({_rights(server)})"
            found.append(f"{PROJECT_MCP_FILE}, server {name}: {server.url or started}")
    for file, hook in hooks.project_hooks(cwd).hooks:
        found.append(
            f"{file.relative_to(cwd)}, {hook.event}: {shlex.join((hook.command, *hook.args)) if hook.args else hook.command}"
        )
    for name in (f".zot/{COMMANDS}", CLAUDE_COMMANDS):
        found += [f"{file.relative_to(cwd)}: {command}" for file, command in _runs_of_commands(cwd, name)]
    place = project_extensions(cwd)
    for entry in sorted(place.iterdir()) if is_directory(place) else ():
        with suppress(ManifestError):
            manifest = read_extension(entry)
            started = f"{shlex.join(manifest.argv)} ({rights(manifest.sandbox)})"
            found.append(f"{entry.relative_to(cwd)}: {started}")
    program = interpreter(python, cwd, uses_workspace=True)
    found += [f"{path.relative_to(cwd)}: run by {program}" for path in sorted((place / "tools").glob("*.py"))]
    more = len(found) - MAX_COMMANDS
    return [*(line[:COMMAND_CHARS] for line in found[:MAX_COMMANDS]), *([f"and {more} more"] if more > 0 else [])]


def _rights(server: McpServer) -> str:
    return rights(None if server.sandbox is UNSET else server.sandbox)


def _runs_of_commands(cwd: Path, name: str) -> list[tuple[Path, str]]:
    """The shell commands that slash commands of a project run; those in the user's home directory are the user's."""
    place = cwd / name
    if not is_directory(place) or os.path.realpath(place) == os.path.realpath(Path.home() / name):
        return []
    return shell_runs(place)


def of_session(places: ExtensionSources, paths: Iterable[Path]) -> Discovered:
    """What `--ext` names, which is reloaded when it is saved. Blocks, as all of these do."""
    found = discover(explicit=list(paths), cwd=None, home=None, is_trusted=_untrusted)
    found.manifests[:] = map(saved.stamped, found.manifests)
    data.prepare(found.manifests, home=places.home, cwd=places.home, is_explicit=True)
    return found


def of_clients(places: ExtensionSources, cwd: Path, files: Iterable[Path]) -> Discovered:
    """The MCP servers of files that clients have brought; of one name the first counts."""
    found = Discovered()
    for file in files:
        _add_servers(found, places, file, cwd)
    return found


async def check_named(paths: Sequence[str]) -> None:
    """Raise `CommandError` when one of the extensions that a client names by path has no usable manifest."""
    for path in paths:
        try:
            async with asyncio.timeout(CHECK_S):
                await asyncio.to_thread(read_extension, _directory(Path(path)))
        except ManifestError as error:
            raise CommandError(Code.BAD_REQUEST, str(error)) from error
        except TimeoutError as error:
            sentence = f"the manifest of the extension {path} could not be read within {CHECK_S:g} s"
            raise CommandError(Code.TIMEOUT, sentence) from error


def _directory(path: Path) -> Path:
    return path.parent if path.name == FILE else path


def of_workspace(
    places: ExtensionSources, cwd: Path, *, is_trusted: bool, trusting: WorkspaceTrust | None = None
) -> Discovered:
    """What the sessions of a directory share. `trusting`: what it has found is noted in the manifests to be started."""
    found = discover(explicit=(), cwd=cwd, home=places.home, is_trusted=lambda _: is_trusted)
    if places.has_daemon:
        found = replace(found, manifests=[one for one in found.manifests if not _is_for_all(one, places.home)])
    _stamp(found, places.home)
    user, project = places.home / "extensions", project_extensions(cwd)
    digests = trusting.code.digests if trusting is not None and trusting.code is not None else None
    modules = tools_host(
        [project, user] if is_trusted else [user],
        cwd=cwd,
        python=places.python,
        uses_workspace=is_trusted,
        guarded=None if digests is None else Guarded(project, digests),
    )
    if modules is not None:
        _add(found, [modules])
    for file in [cwd / PROJECT_MCP_FILE, places.home / MCP_FILE] if is_trusted else [places.home / MCP_FILE]:
        _add_servers(found, places, file, cwd)
    _add_hooks(found, places, cwd, is_trusted=is_trusted)
    found.manifests.sort(key=lambda manifest: manifest.directory.is_relative_to(user))  # as sessions rank them
    if trusting is not None:
        marked = [_marked(one, trusting, cwd, user) for one in found.manifests]
        data.prepare(marked, home=places.home, cwd=cwd)
        keeps = (lambda manifest: bool(manifest.granted)) if trusting.is_changed else _keeps_none
        return replace(found, manifests=marked, keeps=keeps)
    return found


def of_daemon(places: ExtensionSources) -> Discovered:
    """What all workspaces share: the user's extensions of scope `daemon`."""
    found = discover(explicit=(), cwd=None, home=places.home, is_trusted=_untrusted)
    for some in (found.manifests, found.disabled):
        some[:] = [one for one in some if _is_for_all(one, places.home)]
    _stamp(found, places.home)
    found.shadowed.clear()
    found.errors.clear()  # each workspace tells them
    data.prepare(found.manifests, home=places.home, cwd=places.home)
    return found


def _stamp(found: Discovered, home: Path) -> None:
    """Note the versions of the user's extensions that are reloaded when they are saved."""
    user = home / "extensions"
    for index, manifest in enumerate(found.manifests):
        if manifest.directory.is_relative_to(user) and saved.is_followed(manifest):
            found.manifests[index] = saved.stamped(manifest)


def _marked(manifest: Manifest, trusting: WorkspaceTrust, cwd: Path, user: Path) -> Manifest:
    """Return the manifest with `granted` if it is of the workspace; the user's own extensions need no trust."""
    is_user_s = manifest.directory.is_relative_to(user) or (
        manifest.file is not None and manifest.file != cwd / PROJECT_MCP_FILE and manifest.name != hooks.PROJECT
    )
    return manifest if is_user_s else replace(manifest, granted=trusting.mark(manifest))


def _interpreter(python: str | None, cwd: Path) -> Iterator[str]:
    if python is not None and "/" in python and inside(python, cwd) is not None:
        yield python
        yield os.path.join(os.path.dirname(os.path.dirname(python)), "pyvenv.cfg")  # noqa: PTH118, PTH120


def _of_servers(cwd: Path) -> Iterator[str]:
    for server in entries(cwd / PROJECT_MCP_FILE).values():
        if isinstance(server, McpServer):
            for word in (server.command, *server.args):
                yield os.path.join(server.cwd, word)  # noqa: PTH118


def _of_manifests(cwd: Path) -> Iterator[str]:
    place = project_extensions(cwd)
    for directory in sorted(place.iterdir()) if is_directory(place) else ():
        try:
            manifest = read_manifest(directory)
        except ManifestError:
            continue
        yield from (os.path.join(directory, word) for word in manifest.argv)  # noqa: PTH118


def _add_hooks(found: Discovered, places: ExtensionSources, cwd: Path, *, is_trusted: bool) -> None:
    """Add the user's hooks, which are asked first, and those of a project that is trusted."""
    own = [places.home / hooks.FILE, *([places.claude_settings] if places.claude_settings is not None else [])]
    chosen = [(hooks.USER, hooks.find_hooks(own))]
    if is_trusted:
        chosen.append((hooks.PROJECT, hooks.project_hooks(cwd, beside=own)))
    for name, some in chosen:
        found.errors.update(some.faults)
        found.errors.update(hooks.missing_programs(some, directory=cwd))
        manifest = hooks.hook_manifest(name, some, directory=cwd)
        if manifest is not None:
            _add(found, [manifest])


def _add_servers(found: Discovered, places: ExtensionSources, file: Path, cwd: Path) -> None:
    manifests, faults = servers(file, directory=cwd, logins=places.home / LOGINS)
    _add(found, manifests)
    found.errors.update({file / str(about): sentence for about, sentence in faults.items()})


def _add(found: Discovered, manifests: Sequence[Manifest]) -> None:
    """Behind what there is; of one name the first counts."""
    for manifest in manifests:
        earlier = next((one for one in found.manifests if one.name == manifest.name), None)
        if earlier is not None:
            found.shadowed.append(Shadowed(manifest, earlier.directory))
        else:
            (found.manifests if manifest.is_enabled else found.disabled).append(manifest)


def _is_for_all(manifest: Manifest, home: Path) -> bool:
    """A project's extension serves only the project, whatever its scope says: it is trusted for nothing else."""
    return manifest.scope is ProcessScope.DAEMON and manifest.directory.is_relative_to(home)


def _untrusted(_: Path) -> bool:
    return False


def _keeps_none(_: Manifest) -> bool:
    return False
