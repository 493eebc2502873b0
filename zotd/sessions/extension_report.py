"""What people read about extensions: `ext list`, `ext doctor`; those that run, and those that do not."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from zotd.contributions import discovery
from zotd.contributions.scope import ExtensionScope
from zotd.contributions.trust import WorkspaceTrust
from zotd.exthost import installed, report
from zotd.exthost.discovery import Discovered, discover, project_extensions
from zotd.exthost.installed import InstallError
from zotd.exthost.jails import rights
from zotd.exthost.manifest import Manifest
from zotd.exthost.mcp import PREFIX
from zotd.exthost.report import ExtensionStatus
from zotd.sessions.extension_pool import ExtensionPool
from zotd.wire.extensions import ExtensionInfo, Finding, Scope


async def of_layers(extension_pool: ExtensionPool, layers: Sequence[ExtensionScope]) -> list[ExtensionInfo]:
    """The extensions of these hosts, in load order, and those that they would have if they were allowed."""
    found: list[ExtensionInfo] = []
    for layer in layers:
        found += [_running(extension_pool, layer, one) for one in layer.host.status()]
    for layer in layers:
        found += [_resting(extension_pool, one, "disabled", layer.cwd) for one in layer.host.discovered.disabled]
        if layer.trusting is not None and not layer.trusting.is_trusted:
            waiting = await asyncio.to_thread(_waiting, extension_pool, Path(layer.cwd))
            found += [_resting(extension_pool, one, "untrusted", layer.cwd) for one in waiting]
    return found


def is_live(layers: Sequence[ExtensionScope], cwd: str | None) -> bool:
    """Whether the workspace's own host is among these."""
    return any(layer.trusting is not None and layer.cwd == cwd for layer in layers)


async def of_rest(extension_pool: ExtensionPool, cwd: str | None) -> list[ExtensionInfo]:
    """What a directory without sessions has (None: what is installed for all), none of which runs."""
    return await asyncio.to_thread(_of_rest, extension_pool, cwd)


async def findings(extension_pool: ExtensionPool, layers: Sequence[ExtensionScope], scope: Scope) -> list[Finding]:
    """What is not as it should be with the extensions of these hosts, in `scope`, and with what is installed."""
    found: list[Finding] = []
    if scope.cwd is not None and not is_live(layers, scope.cwd):
        found += await asyncio.to_thread(_of_resting, extension_pool, scope.cwd)
    for layer in layers:
        found += [Finding(name, text, layer.cwd) for name, text in layer.host.doctor()]
        found += [Finding(name, text, layer.cwd, "doubtful") for name, text in report.doubts(layer.host.extensions)]
        found += _disabled(layer.host.discovered, layer.cwd)
        found += [Finding("", f"{file}: {error}", layer.cwd) for file, error in layer.faults.items()]
        if layer.trusting is not None and layer.trusting.sentence:
            found.append(Finding("", layer.trusting.sentence, layer.cwd, "untrusted"))
        for session, view in layer.views.items():
            if scope.session in {None, session}:
                found += [
                    Finding(name, text, view.about.cwd)
                    for name, text in [*view.resolution.hidden(), *view.offers.conflicts()]
                ]
    found += await asyncio.to_thread(_of_installed, extension_pool.places.home)
    return list(dict.fromkeys(found))  # what two share in one host, each session that sees both has, too


def _of_resting(extension_pool: ExtensionPool, cwd: str) -> list[Finding]:
    trusting = WorkspaceTrust(extension_pool.trust, cwd)
    discovered = discovery.of_workspace(extension_pool.places, Path(cwd), is_trusted=trusting.look())
    found = [Finding(name, text, cwd) for name, text in report.findings(discovered)] + _disabled(discovered, cwd)
    return [*found, Finding("", trusting.sentence, cwd, "untrusted")] if trusting.sentence else found


def _disabled(discovered: Discovered, cwd: str) -> list[Finding]:
    return [Finding(one.name, f"{one.directory} is disabled", cwd, "disabled") for one in discovered.disabled]


def _of_rest(extension_pool: ExtensionPool, cwd: str | None) -> list[ExtensionInfo]:
    if cwd is None:
        found = discover(explicit=(), cwd=None, home=extension_pool.places.home, is_trusted=lambda _: False)
        return [*_all_resting(extension_pool, found, "")]
    trusting = WorkspaceTrust(extension_pool.trust, cwd)
    found = discovery.of_workspace(extension_pool.places, Path(cwd), is_trusted=trusting.look())
    infos = [*_all_resting(extension_pool, found, cwd)]
    if not trusting.is_trusted:
        infos += [_resting(extension_pool, one, "untrusted", cwd) for one in _waiting(extension_pool, Path(cwd))]
    return infos


def _all_resting(extension_pool: ExtensionPool, found: Discovered, cwd: str) -> Iterator[ExtensionInfo]:
    for manifest in found.manifests:
        yield _resting(extension_pool, manifest, "stopped", cwd)
    for manifest in found.disabled:
        yield _resting(extension_pool, manifest, "disabled", cwd)


def _of_installed(home: Path) -> list[Finding]:
    try:
        return [Finding(name, text) for name, text in installed.verify(home)]
    except InstallError as error:
        return [Finding("", str(error))]


def _waiting(extension_pool: ExtensionPool, cwd: Path) -> list[Manifest]:
    """What would be started beside the rest if the project were trusted; nothing but descriptions is read."""
    places = extension_pool.places
    used = discovery.of_workspace(places, cwd, is_trusted=False).manifests
    return [one for one in discovery.of_workspace(places, cwd, is_trusted=True).manifests if one not in used]


def _running(extension_pool: ExtensionPool, layer: ExtensionScope, status: ExtensionStatus) -> ExtensionInfo:
    info = replace(
        _resting(extension_pool, status.manifest, status.state, layer.cwd),
        reason=status.reason or (_faults(layer) if status.manifest.restarts_when_stuck else ""),
        pid=status.pid,
        tools=list(status.tools),
        commands=list(status.commands),
        responding=status.is_responding,
    )
    return replace(info, source="session", session=next(iter(layer.views), "")) if layer.is_of_session else info


def _faults(layer: ExtensionScope) -> str:
    """Which modules do not load, and why."""
    return "; ".join(f"{Path(file).name}: {error}" for file, error in layer.faults.items())


def _resting(extension_pool: ExtensionPool, manifest: Manifest, state: str, cwd: str) -> ExtensionInfo:
    return ExtensionInfo(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        language=manifest.language,
        source=_source(manifest, cwd),
        scope=manifest.scope,
        cwd=cwd,
        directory=str(manifest.directory),
        state=state,
        reason="",
        pid=None,
        tools=[],
        commands=[],
        log=str(extension_pool.places.home / "logs" / f"ext-{manifest.name}.log"),
        responding=True,
        rights=rights(manifest.sandbox),
    )


def _source(manifest: Manifest, cwd: str) -> str:
    if manifest.restarts_when_stuck:
        return "modules"
    if manifest.name.startswith(PREFIX) and str(manifest.directory) == cwd:
        return "mcp"
    project = cwd and manifest.directory.is_relative_to(project_extensions(Path(cwd)))
    return "project" if project else "user"
