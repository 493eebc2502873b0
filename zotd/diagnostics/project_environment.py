"""What a project has installed of its own: programs, and a Python interpreter with packages. All functions block."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

VENVS = (".venv", "venv")
"""Names of virtual environments."""

PROGRAMS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where programs of a project are, relative to its root."""


def find_program(name: str, places: Sequence[Path], env: Mapping[str, str]) -> str | None:
    """Return the path of a program: in the environments of `places`, else in PATH; None if there is none."""
    own = os.pathsep.join(str(place / folder) for place in places for folder in PROGRAMS)
    return shutil.which(name, path=own) or shutil.which(name, path=env.get("PATH", os.defpath))


def has_in_package(package: str, file: str, places: Iterable[Path], program: str) -> bool:
    """Return whether a package of npm has this file: the project's, else the one that is installed beside the program."""
    around = [*places, *Path(os.path.realpath(program)).parents]
    found = (place / "node_modules" / package for place in around)
    nearest = next((folder for folder in found if folder.is_dir()), None)
    return nearest is not None and (nearest / file).exists()


def find_python(places: Iterable[Path], env: Mapping[str, str]) -> Path | None:
    """Return the interpreter of the project's virtual environment, else of the one that is active; None: there is none."""
    active = env.get("VIRTUAL_ENV", "")
    venvs = [place / name for place in places for name in VENVS] + ([Path(active)] if active else [])
    found = (venv / "bin" / "python" for venv in venvs)
    return next((python for python in found if os.access(python, os.X_OK)), None)


def packages_stamp(python: Path | None) -> Sequence[tuple[str, int]]:
    """Return something that differs when packages were installed or removed, or another interpreter is used."""
    if python is None:
        return ()
    found = sorted(python.parent.parent.glob("lib/python3*/site-packages"))
    return [(str(python), 0), *((str(place), place.stat().st_mtime_ns) for place in found)]
