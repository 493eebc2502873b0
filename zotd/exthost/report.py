"""State and problems of a workspace's extensions, for `ext list` and `ext doctor`."""

from collections.abc import Iterable

from msgspec import Struct

from zotd.core.life import ExtensionState
from zotd.core.supervision import LATE
from zotd.exthost.discovery import Discovered
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.guards import is_responding
from zotd.exthost.manifest import Manifest

DOUBTS = 4
"""Number of parameters without a schema that are listed; the others are only counted."""


class ExtensionStatus(Struct, frozen=True):
    """An extension, as `ext list` shows it."""

    manifest: Manifest
    state: ExtensionState
    reason: str
    pid: int | None
    tools: tuple[str, ...]
    commands: tuple[str, ...]
    log: str
    is_responding: bool


def status(extension: SupervisedExtension) -> ExtensionStatus:
    """Describe the current state of an extension."""
    offered = extension.offered
    return ExtensionStatus(
        manifest=extension.manifest,
        # Supervision counts it as ready so that runs do not wait, but for people it is still starting.
        state=ExtensionState.STARTING if extension.reason == LATE else extension.state,
        reason=extension.reason,
        pid=extension.serving.process.pid if extension.serving else None,
        tools=tuple(offered.tools) if offered else (),
        commands=tuple(offered.commands) if offered else (),
        log=str(extension.log.path),
        is_responding=is_responding(extension),
    )


def complaints(extension: SupervisedExtension) -> list[str]:
    """Return the faults of an extension: sentences, or phrases that continue its name."""
    found = [extension.reason] if extension.reason else []
    found += [extension.warning] if extension.warning else []
    found += list(extension.offered.refused.values()) if extension.offered else []
    if not is_responding(extension):
        found.append("does not respond to requests")
    peer = extension.serving
    if peer is not None:
        counts, dropped = peer.counts, peer.calls.dropped
        told = {
            "lines that are not JSON": counts.stray,
            "unknown frames": counts.unknown,
            "bad frames": counts.bad,
            "lines over 4 MiB": counts.too_long,
            "late answers": dropped.late,
            "unexpected answers": dropped.unknown,
        }
        found += [f"{number} {what} were dropped" for what, number in told.items() if number]
    return found


def doubts(extensions: Iterable[SupervisedExtension]) -> list[tuple[str, str]]:
    """Return things that work differently from what the author may expect: an extension's name and a sentence."""
    return [(one.name, doubt) for one in extensions for doubt in _doubts(one)]


def findings(discovered: Discovered) -> list[tuple[str, str]]:
    """Return what cannot be used: an extension's name (empty if unknown) and a sentence."""
    found = [("", error) for error in discovered.errors.values()]
    return found + [
        (one.manifest.name, f"{one.manifest.directory} is hidden by {one.by}") for one in discovered.shadowed
    ]


def _doubts(extension: SupervisedExtension) -> list[str]:
    found = extension.offered.doubts() if extension.offered else []
    more = [f"and {len(found) - DOUBTS} more such parameters"] if len(found) > DOUBTS else []
    return found[:DOUBTS] + more
