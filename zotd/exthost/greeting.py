"""Builds the `hello_ack` that answers an extension's `hello`."""

import os
from collections.abc import Callable

from zotd.exthost import data
from zotd.exthost.manifest import Manifest
from zotd.exthost.surroundings import Surroundings
from zotd.wire import ext


def hello_ack(
    manifest: Manifest, where: Surroundings, *, can_call_tools: bool, say: Callable[[str], None]
) -> ext.HelloAck:
    """Build the frame, and create the extension's data directory; `say` gets the error if that fails."""
    return ext.HelloAck(
        protocol_version=ext.PROTOCOL_VERSION,
        zot_version=where.version,
        provider=where.provider,
        model=where.model,
        cwd=_text(where.cwd),
        extension_dir=_text(str(manifest.directory)),
        # Created only now, so that an extension that never says hello leaves no directory behind.
        data_dir=_text(data.made(manifest, where, say)),
        capabilities=(ext.CALL_TOOL,) if can_call_tools else (),
        features=where.features,
    )


def _text(path: str) -> str:
    """Return a path that is valid in JSON, although file names need not be UTF-8."""
    return os.fsencode(path).decode(errors="replace")
