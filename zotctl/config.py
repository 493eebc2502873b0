"""`zotctl config`: shows and checks the configuration without a daemon."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from zotctl import output
from zotctl.commands import Subparsers
from zotd import paths
from zotd.client.errors import ClientError
from zotd.sanitize import one_line


def add(commands: Subparsers) -> None:
    """Register `config` and its actions."""
    parser = commands.add_parser(
        "config", help="show or check the configuration", epilog="example: zotctl config check"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list every setting with its value and source")
    show.add_argument("--json", action="store_true", help="print the result as JSON")
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="check config.toml for errors")
    check.add_argument("--json", action="store_true", help="print the result as JSON")
    check.set_defaults(run=_check)


class Found(NamedTuple):
    """The effective configuration: values and their sources by setting name, and warnings about the file."""

    path: str
    values: Mapping[str, object]
    sources: Mapping[str, str]
    warnings: Sequence[str]


def _show(args: argparse.Namespace) -> int:
    found = load()
    if args.json:
        settings = {name: {"value": value, "source": found.sources[name]} for name, value in found.values.items()}
        output.print_json({"v": 1, "path": found.path, "settings": settings})
        return 0
    rows = [[name, json.dumps(value), found.sources[name]] for name, value in found.values.items()]
    output.print_table(["SETTING", "VALUE", "SOURCE"], rows)
    print(one_line(f"file: {found.path}{'' if os.path.exists(found.path) else ' (does not exist)'}"))
    return 0


def _check(args: argparse.Namespace) -> int:
    found = load()
    found = found._replace(warnings=[*found.warnings, *_malformed_hosts(found)])
    if args.json:
        warnings = list(found.warnings)
        output.print_json({"v": 1, "path": found.path, "ok": not warnings, "warnings": warnings})
    elif not found.warnings:
        is_there = os.path.exists(found.path)
        print(
            one_line(
                f"{found.path}: {'no problems found' if is_there else 'does not exist; every setting has its default'}"
            )
        )
    for warning in found.warnings:
        sys.stderr.write(f"zotctl: {one_line(warning)}\n")
    return 1 if found.warnings else 0


def load() -> Found:
    """Load the configuration of this environment; raises `ClientError` if the daemon would refuse it."""
    from pathlib import Path  # noqa: PLC0415  (with zotd.config 50 ms, only for this command)

    import msgspec  # noqa: PLC0415

    from zotd import config  # noqa: PLC0415

    path = os.path.join(paths.zot_home(os.environ), "config.toml")
    try:
        loaded = config.load(Path(path), os.environ)
    except config.ConfigError as error:
        raise ClientError(str(error)) from error
    return Found(path, msgspec.to_builtins(loaded.values), loaded.sources, loaded.warnings)


def _malformed_hosts(found: Found) -> Iterator[str]:
    """Yield a sentence for each host of `sandbox.hosts` that the proxy cannot understand, and leaves out."""
    from zotd.proxy import HostError, parse_rule  # noqa: PLC0415  (with asyncio 50 ms, only for this command)

    hosts = found.values["sandbox.hosts"]
    for host in hosts if isinstance(hosts, list | tuple) else ():
        try:
            parse_rule(host)
        except HostError as error:
            yield f"{found.path}: sandbox.hosts: {error}"
