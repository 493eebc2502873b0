"""`zotctl ext new`: creates a small working extension from a template. Needs no daemon."""

import argparse
import os
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

from zotctl.commands import Subparsers
from zotd import paths
from zotd.client.errors import ClientError
from zotd.sanitize import one_line

SKELETONS = Path(__file__).parents[1] / "skeletons"
"""Templates by language. The files end in `.tmpl`, so that linters and packagers ignore them."""

PREPARATIONS = {
    "py": "",
    "sh": "",
    "js": "",
    "ts": "",
    "go": "(cd {directory} && go build)",
}
"""The command to run once before the first start, by language."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The same rule as in `zotd.exthost.manifest`, which clients must not import."""

RESERVED = ("tools", "channels")
"""Directories of Python modules next to the extensions."""

EXECUTABLE = 0o755


class SkeletonError(ClientError):
    """The extension could not be created."""


def add(actions: Subparsers) -> None:
    """Register `new`."""
    parser = actions.add_parser(
        "new",
        help="create an extension from a template",
        epilog="example: zotctl ext new weather --lang py --dir .zot/extensions",
    )
    parser.add_argument("name", metavar="NAME", help="name of the extension")
    parser.add_argument("--lang", required=True, choices=PREPARATIONS, help="language of the template")
    parser.add_argument("--dir", default=".", metavar="DIR", help="where to create the directory NAME (default: here)")
    parser.set_defaults(run=_run)


def new(name: str, lang: str, directory: Path) -> list[Path]:
    """Create the extension in `directory / name`, with missing parents, and return its files, sorted.

    `lang` is a key of `PREPARATIONS`.

    Raises:
        SkeletonError: the name is invalid, the directory exists, or it cannot be written.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        allowed = 'use 1 to 64 letters, digits, ".", "_" and "-", starting with a letter or digit'
        raise SkeletonError(f'invalid extension name "{name}": {allowed}; tools and channels are reserved')
    target = directory / name
    try:
        target.mkdir(parents=True)
        for template in SKELETONS.joinpath(lang).iterdir():
            if template.is_dir():  # the SDK, as it is
                shutil.copytree(template, target / template.name)
            else:
                _write(template, target / template.stem, name)
        if lang == "py":
            _copy_sdk(target / "zot_sdk")
    except FileExistsError as error:
        raise SkeletonError(f"{error.filename} already exists; choose another name or remove it") from error
    except OSError as error:
        raise SkeletonError(f"cannot write {error.filename}: {str(error.strerror).lower()}") from error
    return sorted(path for path in target.rglob("*") if path.is_file())


def _run(args: argparse.Namespace) -> int:
    parent = Path(args.dir)
    files = new(args.name, args.lang, parent)
    target = parent / args.name
    made = f"created {target} with {', '.join(_shown(files, target))}"
    print(f"{one_line(made)}\n")
    for command, meaning in _next_steps(target, args.lang):
        print(f"  {one_line(command)}\n      {one_line(meaning)}")
    return 0


def _write(template: Path, path: Path, name: str) -> None:
    # Model vendors do not allow dots in tool names.
    text = template.read_text("utf-8").replace("{{NAME}}", name).replace("{{TOOL}}", name.replace(".", "_"))
    path.write_text(text, "utf-8")
    if text.startswith("#!"):
        path.chmod(EXECUTABLE)  # wheels do not preserve file modes


def _copy_sdk(target: Path) -> None:
    """Copy the SDK next to the extension.

    The extension's `python3` usually cannot import `zotd`, which is installed in its own environment, and a path to that
    environment would break on other machines and after reinstalling.
    """
    spec = find_spec("zotd.sdk")
    assert spec is not None
    assert spec.origin is not None
    target.mkdir()
    for source in Path(spec.origin).parent.glob("*.py"):
        shutil.copyfile(source, target / source.name)


def _shown(files: list[Path], target: Path) -> list[str]:
    """Return the names of files and top-level directories, sorted."""
    names = [path.relative_to(target).parts for path in files]
    return sorted({parts[0] + ("/" if len(parts) > 1 else "") for parts in names})


def _next_steps(target: Path, lang: str) -> list[tuple[str, str]]:
    directory = shlex.quote(str(target))
    shared = os.path.join(paths.zot_home(os.environ), "extensions")
    everywhere = shlex.quote(shared)
    made = "" if os.path.isdir(shared) else f"mkdir -p {everywhere} && "
    steps = [
        (PREPARATIONS[lang].format(directory=directory), "once, before the first start"),
        (f"zotctl ext validate {directory}", "check it against the protocol"),
        (f"zot -e {directory}", "try it in one session"),
        (f"{made}ln -s {shlex.quote(str(target.absolute()))} {everywhere}/", "enable it in every session"),
        (f"zotctl ext reload {target.name}", "after a change"),
    ]
    return [step for step in steps if step[0]]
