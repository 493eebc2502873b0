"""What is validated: an extension with a manifest, or a directory of Python modules, which becomes one."""

from pathlib import Path

from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest
from zotd.exthost.modules import tools_host


def find_subject(path: Path, *, cwd: Path) -> Manifest:
    """What `path` means: a manifest or its directory, or Python modules: `tools/NAME.py`, `tools`, or what holds it.

    Modules are served by zot's own interpreter, as for a session in `cwd`.

    Raises:
        ManifestError: neither is there, or the manifest is wrong.
    """
    path = path.absolute()
    directory = path.parent if path.is_file() else path
    if (directory / FILE).exists():
        return read_manifest(directory)
    root = directory.parent if directory.name == "tools" else directory
    host = tools_host([root], cwd=cwd, python=None) if any(root.glob("tools/[!_]*.py")) else None
    if host is None:
        raise ManifestError(f"there is neither {directory / FILE} nor a Python module {root / 'tools'}/NAME.py")
    return host
