"""Finds the object of a validation: an extension with a manifest, or a directory of Python modules."""

from pathlib import Path

from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest
from zotd.exthost.modules import tools_host
from zotd.exthost.scripts import RESERVED, is_script, script_manifest


def find_subject(path: Path, *, cwd: Path) -> Manifest:
    """Return the manifest that `path` means.

    `path` is a manifest, its directory, an extension in one file, or Python modules: `tools/NAME.py`, `tools`, or the
    directory that contains it.
    Modules run in zot's own interpreter, as for a session in `cwd`.

    Raises:
        ManifestError: there is neither, or the manifest is invalid.
    """
    path = path.absolute()
    directory = path.parent if path.is_file() else path
    if (directory / FILE).exists():
        return read_manifest(directory)
    if is_script(path) and directory.name not in RESERVED:
        return script_manifest(path)
    root = directory.parent if directory.name == "tools" else directory
    # Names that begin with `_` are helpers; a directory with nothing else has no tool.
    host = tools_host([root], cwd=cwd, python=None) if any(root.glob("tools/[!_]*.py")) else None
    if host is None:
        raise ManifestError(f"there is neither {directory / FILE} nor a Python module {root / 'tools'}/NAME.py")
    return host
