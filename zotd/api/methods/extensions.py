"""Commands about extensions: list, diagnose, reload, logs, frames, install and remove."""

import asyncio
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from zotd.api.connection import ServerConnection
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of, session_of
from zotd.clock import rfc3339
from zotd.contributions.scope import ExtensionScope, wait_discovered
from zotd.exthost import data, removal
from zotd.exthost import install as installing
from zotd.exthost.installed import InstallError
from zotd.exthost.jails import rights
from zotd.sessions import extension_report
from zotd.wire import events, extensions
from zotd.wire.base import encode
from zotd.wire.errors import Code, CommandError

T = TypeVar("T")

log = logging.getLogger(__name__)

TAP_BYTES = 64 * 1024
"""Length of a frame in a tap; the rest is cut."""

QUESTIONS = 1_000
"""Number of frames that a tap remembers to measure the latency of their responses."""

LOG_BYTES = 512 * 1024
"""Maximum length of a log excerpt in a response."""

MAX_LINES = 5_000

MAX_NAME = 80
"""Longest name of an extension: 64 characters in a manifest, more with our prefixes for modules and MCP servers."""


async def listing(call: Invocation, params: extensions.Scope) -> extensions.ExtensionList:
    """List the extensions and their states."""
    extension_pool = call.manager.extension_pool
    layers = await _layers(call, params)
    found = await extension_report.of_layers(extension_pool, layers)
    if params.session is None:
        known = {(one.name, one.directory) for one in found}
        rest = (
            []
            if extension_report.is_live(layers, params.cwd)
            else await extension_report.of_rest(extension_pool, params.cwd)
        )
        found += [one for one in rest if (one.name, one.directory) not in known]
    return extensions.ExtensionList(found)


async def doctor(call: Invocation, params: extensions.Scope) -> extensions.Findings:
    """List problems of extensions and of slash commands that are files, and why some are not used."""
    layers, manager = await _layers(call, params), call.manager
    found = await extension_report.findings(manager.extension_pool, layers, params)
    cwd = params.cwd
    if params.session is not None:
        cwd = (await session_of(call, params.session)).ledger.row.cwd
    # Without a directory only what is the user's: the home is in none.
    paths = manager.planner.paths_in(cwd or str(manager.extension_pool.places.home))
    return extensions.Findings(found + await manager.commands.findings(paths, layers))


async def reload(call: Invocation, params: extensions.Scoped) -> extensions.Reloaded:
    """Restart one extension, or read all manifests again."""
    report = await call.manager.extension_pool.reload(await _layers(call, params), params.name)
    return extensions.Reloaded(report.stopped, report.loaded, report.ready, report.errors)


async def logs(call: Invocation, params: extensions.Logs) -> extensions.LogPage:
    """Return the end of an extension's log, and optionally follow it."""
    running = [one for layer in await _layers(call, params) for one in layer.host.extensions if one.name == params.name]
    path = running[0].log.path if running else _log_path(call, params.name)
    text = await asyncio.to_thread(_tail, path, max(0, min(params.lines, MAX_LINES)))
    if text is None and not running:
        raise CommandError(Code.NOT_FOUND, f"there is no extension {params.name} and no log with that name")
    if params.follow:
        connection = connection_of(call)
        for extension in running:
            tail: Callable[[bytes], None] = _Tail(connection, extension.name)
            _watch(connection, extension.log.listeners, tail)
    return extensions.LogPage(str(path), text or "")


async def tap(call: Invocation, params: extensions.Tap) -> None:
    """Send every frame between an extension and the daemon to the client from now on."""
    found = [one for layer in await _layers(call, params) for one in layer.host.extensions if one.name == params.name]
    if not found:
        raise CommandError(
            Code.NOT_FOUND, f"no extension {params.name} is running here; `zotctl ext list` shows those that are"
        )
    connection = connection_of(call)
    call.respond()
    for extension in found:
        wire: Callable[[str, bytes], None] = _Wire(connection, extension.name)
        _watch(connection, extension.taps, wire)


async def install(call: Invocation, params: extensions.Install) -> extensions.InstalledExtension:
    """Install an extension for all workspaces. None of its code is executed."""
    connection = connection_of(call)

    def progress(words: str) -> None:
        connection.write(encode(events.Notice("info", words)) + b"\n")

    home = call.manager.extension_pool.places.home
    try:
        done = await installing.install(
            params.source, home=home, cwd=Path("/"), env=os.environ, replace=params.replace, progress=progress
        )
    except InstallError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error
    manifest, record = done.manifest, done.record
    log.info("extension %s was installed from %s", manifest.name, record.source)
    return extensions.InstalledExtension(
        manifest.name,
        manifest.version,
        str(manifest.directory),
        record.digest,
        record.commit,
        kept=str(done.kept or ""),
        rights=rights(manifest.sandbox),
    )


async def remove(call: Invocation, params: extensions.Remove) -> extensions.Removed:
    """Remove an installed extension and end its processes."""
    extension_pool = call.manager.extension_pool
    home = extension_pool.places.home
    try:
        done = await asyncio.to_thread(removal.remove, params.name, home=home)
    except InstallError as error:
        raise CommandError(Code.NOT_FOUND, str(error)) from error
    log.info("extension %s was removed", params.name)
    await _catch_up(layer for layer in extension_pool.layers if _has(layer, params.name))
    if params.data:  # after its processes have ended, which may still write to it
        await asyncio.to_thread(data.delete, done.name, home=home)
    left = home / data.PLACE / done.name
    return extensions.Removed(done.name, str(left) if left.is_dir() else "", str(done.kept or ""))


async def enable(call: Invocation, params: extensions.Name) -> None:
    """Enable an extension, whatever its manifest says."""
    await _switch(call, params.name, on=True)


async def disable(call: Invocation, params: extensions.Name) -> None:
    """Disable an extension and end its processes."""
    await _switch(call, params.name, on=False)


async def _switch(call: Invocation, name: str, *, on: bool) -> None:
    extension_pool = call.manager.extension_pool
    try:
        await asyncio.to_thread(removal.set_enabled, name, on, home=extension_pool.places.home)
    except InstallError as error:
        raise CommandError(Code.NOT_FOUND, str(error)) from error
    await _catch_up(layer for layer in extension_pool.layers if layer.trusting is not None or _has(layer, name))


async def _catch_up(layers: Iterable[ExtensionScope]) -> None:
    """Make these scopes start and stop what has changed; other extensions keep running."""
    async with asyncio.TaskGroup() as tasks:
        for layer in layers:
            tasks.create_task(layer.look_again(), name=f"new choices in {layer.cwd}")


async def _layers(call: Invocation, scope: extensions.Scope) -> list[ExtensionScope]:
    """Return the scopes that are meant, after their extensions were discovered."""
    extension_pool = call.manager.extension_pool
    if scope.cwd is not None and "\0" in scope.cwd:
        raise CommandError(Code.BAD_REQUEST, "a directory name cannot contain NUL")
    if scope.session is not None:
        session = await session_of(call, scope.session)
        extension_pool.join(session)
        layers = extension_pool.of_session(session.id)
    else:
        layers = extension_pool.layers if scope.cwd is None else extension_pool.of_cwd(scope.cwd)
    await wait_discovered(layers)
    return layers


def _has(layer: ExtensionScope, name: str) -> bool:
    return any(name in {one.name, one.manifest.directory.name} for one in layer.host.extensions)


def _log_path(call: Invocation, name: str) -> Path:
    if "/" in name or "\0" in name or len(name) > MAX_NAME:
        raise CommandError(Code.NOT_FOUND, f"there is no extension {name[:MAX_NAME]}")
    return call.manager.extension_pool.places.home / "logs" / f"ext-{name}.log"


def _tail(path: Path, lines: int) -> str | None:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(Code.INTERNAL, f"{path} cannot be read: {error.strerror}") from error
    kept = data.decode(errors="replace").splitlines(keepends=True)
    return "".join(kept[-lines:] if lines else [])


def _watch(connection: ServerConnection, watchers: dict[T, None], watcher: T) -> None:
    """Register a watcher until the connection ends. Registering an equal one again has no effect."""
    if watcher not in watchers:
        watchers[watcher] = None
        connection.at_end(partial(watchers.pop, watcher, None))


@dataclass(frozen=True, slots=True)
class _Tail:
    """Sends what an extension writes to its log to one connection; equal to another one for the same two."""

    connection: ServerConnection
    extension: str

    def __call__(self, data: bytes) -> None:
        """Send new log output."""
        self.connection.write(encode(events.ExtLog(self.extension, data.decode(errors="replace"))) + b"\n")


@dataclass(frozen=True, slots=True)
class _Wire:
    """Sends an extension's frames to one connection; equal to another one for the same two."""

    connection: ServerConnection
    extension: str
    asked: OrderedDict[str, float] = field(default_factory=OrderedDict, compare=False)
    """Time of each frame that may get a response, by its id."""

    def __call__(self, direction: str, line: bytes) -> None:
        """Send a frame that was received from (`in`) or sent to the extension."""
        event = events.ExtFrame(
            self.extension,
            direction,
            line[:TAP_BYTES].decode(errors="replace"),
            time=rfc3339(),
            latency_s=self._latency(direction, line),
            cut=max(0, len(line) - TAP_BYTES),
        )
        self.connection.write(encode(event) + b"\n")

    def _latency(self, direction: str, line: bytes) -> float | None:
        """Return the time since the request if this line is its response; else None."""
        try:
            key = msgspec.json.decode(line, type=_WithId).id
        except msgspec.MsgspecError:
            return None
        if not key:
            return None
        now = time.monotonic()
        if key in self.asked:
            return round(now - self.asked.pop(key), 6)
        del direction
        self.asked[key] = now
        if len(self.asked) > QUESTIONS:
            self.asked.popitem(last=False)
        return None


class _WithId(msgspec.Struct, frozen=True):
    id: str | None = None
