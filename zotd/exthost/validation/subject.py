"""What is validated: an extension with a manifest, or a directory of Python modules, which becomes one."""

import sys
from dataclasses import dataclass
from pathlib import Path

from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest

MODULES = "py-tools"
"""What the host program of Python modules calls itself."""

PROGRAM = Path(__file__).parents[2] / "sdk" / "modules"
"""The host program; started by its path it needs no zotd in its interpreter."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An extension that can be started."""

    manifest: Manifest
    has_modules: bool
    """It is the host program of the Python modules in its directory."""


def find_subject(path: Path) -> Subject:
    """What `path` means: a manifest or its directory, or Python modules: `tools/NAME.py`, `tools`, or what holds it.

    Raises:
        ManifestError: neither is there, or the manifest is wrong.
    """
    path = path.absolute()
    directory = path.parent if path.is_file() else path
    if (directory / FILE).exists():
        return Subject(read_manifest(directory), has_modules=False)
    root = directory.parent if directory.name == "tools" else directory
    if not any(root.glob("tools/[!_]*.py")):
        raise ManifestError(f"there is neither {directory / FILE} nor a Python module {root / 'tools'}/NAME.py")
    argv = (sys.executable, str(PROGRAM), str(root), "--name", MODULES)
    return Subject(Manifest(directory=root, name=MODULES, argv=argv), has_modules=True)
