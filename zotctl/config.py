"""`zotctl config`: what the configuration file says, and whether it can be read. Needs no daemon."""

import argparse
import os
import tomllib
from collections.abc import Iterator

from zotctl import output
from zotctl.commands import Commands
from zotd import paths
from zotd.client.errors import ClientError


def add(commands: Commands) -> None:
    """`config show` and `config check`."""
    parser = commands.add_parser("config", help="the configuration file", epilog="example: zotctl config check")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="its settings")
    show.add_argument("--json", action="store_true")
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="is it well-formed?")
    check.add_argument("--json", action="store_true")
    check.set_defaults(run=_check)


def _show(args: argparse.Namespace) -> int:
    path, settings = _read()
    if args.json:
        output.print_json({"v": 1, "path": path, "settings": settings})
        return 0
    print(f"# {path}")
    for name, value in _flat(settings, ""):
        print(f"{name} = {value!r}")
    return 0


def _check(args: argparse.Namespace) -> int:
    path, settings = _read()
    if args.json:
        output.print_json({"v": 1, "path": path, "ok": True})
    else:
        print(f"{path}: {'fine' if settings else 'nothing is set'}")
    return 0


def _read() -> tuple[str, dict[str, object]]:
    path = os.path.join(paths.zot_home(os.environ), "config.toml")
    try:
        with open(path, "rb") as file:
            return path, tomllib.load(file)
    except FileNotFoundError:
        return path, {}
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"{path} is not TOML: {error}") from error


def _flat(settings: dict[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
