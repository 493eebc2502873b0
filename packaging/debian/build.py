"""Build a Debian package: `python packaging/debian/build.py dist/zotd-0.2.0-py3-none-any.whl -o dist`.

It holds a virtual environment, because Debian lacks most of what zot needs, for one minor version of Debian's Python. The
package is for Debian releases with that version. Needs dpkg-deb, and pip in the Python that runs this.
"""

import argparse
import gzip
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

LIBRARY = "usr/lib/zotd"
"""The virtual environment, in the package."""

STEP_S = 900.0
"""Longest wait for one program, such as pip on a slow network."""

CONTROL = """\
Package: zotd
Version: {version}
Architecture: {architecture}
Maintainer: The zotd authors <zotd@invalid>
Installed-Size: {kilobytes}
Depends: python3 (>= {python}), python3 (<< {next_python}), libc6 (>= {libc})
Recommends: bubblewrap, git, ripgrep
Section: devel
Priority: optional
Description: daemon that keeps coding agents alive
 zotd owns the sessions of coding agents, runs their tools and records what
 happens. Terminals, scripts and programs attach to it, leave and come back.
 An accepted input survives a crash, and a tool that changes something is
 never run twice.
 .
 Commands of the model run in a jail if bubblewrap is installed.
"""

PROGRAM = """\
#!/{library}/bin/python3
import sys

from {module} import {function}

sys.exit({function}())
"""


def main(arguments: list[str]) -> int:
    """Build the package and print its path; the exit code."""
    parser = argparse.ArgumentParser(description="Build a Debian package of zot.")
    parser.add_argument("wheel", type=Path, help="the wheel to put into it")
    parser.add_argument("-o", "--output", type=Path, default=Path(), metavar="DIR", help="where to write the package")
    parser.add_argument("--python", default="/usr/bin/python3", metavar="FILE", help="Debian's interpreter")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder, "stage")
        stage.mkdir(mode=0o755)
        _install(stage, options.wheel, options.python)
        _add_units(stage)
        _add_documents(stage)
        print(_packed(stage, options))
    return 0


def _install(stage: Path, wheel: Path, python: str) -> None:
    """Make the virtual environment, without anything that names the directory it is made in."""
    library = stage / LIBRARY
    _run(python, "-m", "venv", "--without-pip", library)
    constraints = ROOT / "packaging/constraints.txt"
    pip = (sys.executable, "-m", "pip", "--python", library / "bin/python3", "install", "--quiet", "--no-compile")
    _run(*pip, "--constraint", constraints, wheel)
    for script in (library / "bin").iterdir():
        if not script.name.startswith("python"):
            script.unlink()
    for origin in library.rglob("*.dist-info/direct_url.json"):
        origin.unlink()
    settings = (library / "pyvenv.cfg").read_text()
    (library / "pyvenv.cfg").write_text(re.sub(r"(?m)^command = .*\n", "", settings))
    (stage / "usr/bin").mkdir()
    for name, (module, function) in _programs(wheel).items():
        script = library / "bin" / name
        script.write_text(PROGRAM.format(library=LIBRARY, module=module, function=function))
        script.chmod(0o755)
        (stage / "usr/bin" / name).symlink_to(f"../lib/zotd/bin/{name}")
    # Users cannot write bytecode there. The files never change, so nothing has to compare their times.
    _run(
        python,
        "-m",
        "compileall",
        "-q",
        "-j",
        "0",
        "-s",
        stage,
        "-p",
        "/",
        "--invalidation-mode",
        "unchecked-hash",
        library,
    )


def _programs(wheel: Path) -> dict[str, tuple[str, str]]:
    """Module and function of each command of a wheel."""
    text = _member(wheel, "entry_points.txt")
    found = re.findall(r"(?m)^(\w+) *= *([\w.]+):(\w+)$", text)
    return {name: (module, function) for name, module, function in found}


def _member(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(one for one in archive.namelist() if one.endswith(f".dist-info/{name}"))).decode()


def _add_units(stage: Path) -> None:
    """The units of `systemd/`, for each user who enables them."""
    units = stage / "usr/lib/systemd/user"
    units.mkdir(parents=True)
    for name in ("zotd.service", "zotd.socket"):
        text = (ROOT / "systemd" / name).read_text()
        (units / name).write_text(text.replace("%h/.local/bin/zotd", "/usr/bin/zotd"))


def _add_documents(stage: Path) -> None:
    documents = stage / "usr/share/doc/zotd"
    documents.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", documents / "copyright")
    shutil.copy(ROOT / "docs/package.md", documents / "README.md")
    (documents / "changelog.gz").write_bytes(gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0))


def _packed(stage: Path, options: argparse.Namespace) -> Path:
    files = sorted(path for path in stage.rglob("*") if path.is_file() and not path.is_symlink())
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(stage)}\n" for path in files]  # noqa: S324
    version = Parser().parsestr(_member(options.wheel, "METADATA"))["Version"]
    major, minor = _said(options.python, "-c", "import sys; print(*sys.version_info[:2])").split()
    values = {
        "version": version,
        "architecture": _said("dpkg", "--print-architecture"),
        "kilobytes": sum(path.stat().st_size for path in files) // 1024,
        "python": f"{major}.{minor}",
        "next_python": f"{major}.{int(minor) + 1}",
        "libc": _libc(stage),
    }
    control = stage / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(CONTROL.format(**values))
    (control / "md5sums").write_text("".join(sums))
    package = options.output / f"zotd_{version}_{values['architecture']}.deb"
    _run("chmod", "-R", "u=rwX,go=rX", stage)
    _run("dpkg-deb", "--build", "--root-owner-group", "-Zzstd", stage, package)
    return package


def _libc(stage: Path) -> str:
    """The oldest version of glibc with which the compiled modules work, by their tags."""
    tags = [path.read_text() for path in stage.rglob("*.dist-info/WHEEL")]
    minors = [min(map(int, found)) for text in tags if (found := re.findall(r"manylinux_2_(\d+)", text))]
    return f"2.{max(minors, default=17)}"


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=STEP_S).stdout.strip()


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=STEP_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
