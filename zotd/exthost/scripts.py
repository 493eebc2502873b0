"""Extensions in one file: `extensions/NAME.py`, a program that uses the SDK and has no manifest (`docs/extensions.md`)."""

import os
import sys
from pathlib import Path

from zotd.exthost.manifest import NAME, Manifest, ManifestError

RESERVED = frozenset({"tools", "channels"})
"""Directories of Python modules, which are not extensions."""


def is_script(entry: Path) -> bool:
    """Return True if an entry of `extensions` is an extension in one file. `_helpers.py` are not."""
    return entry.suffix == ".py" and not entry.name.startswith("_") and os.path.isfile(entry)  # noqa: PTH113


def script_manifest(path: Path) -> Manifest:
    """Return what a manifest would say of the extension in the file at an absolute `path`.

    It runs with the interpreter of zot, which has the SDK.

    Raises:
        ManifestError: an extension cannot have the name of the file.
    """
    name = path.stem
    if not NAME.fullmatch(name) or name in RESERVED:
        raise ManifestError(f"{path}: an extension cannot be named {name[:80]}; rename the file")
    if name in sys.stdlib_module_names:
        raise ManifestError(f"{path} would hide the module {name} of Python from programs beside it; rename it")
    return Manifest(directory=path.parent, name=name, argv=(sys.executable, str(path)), language="python", script=path)
