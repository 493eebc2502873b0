"""`zotctl import`: creates sessions from files."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError
from zotd.client.fields import child, number, text
from zotd.client.humanize import counted
from zotd.sanitize import one_line

IMPORT_S = 3600.0
"""Time limit for one file, in seconds: 1 GB takes 1 to 3 minutes. The daemon finishes even if this program exits."""

ENDINGS = (".jsonl", ".zotsession")
"""Suffixes of the files imported from a directory."""

EPILOG = """\
examples:
  zotctl import ~/.zot/sessions
  zotctl import talk.zotsession --cwd .

Reads session files of the original zot and files written by zotctl export; in a directory, every .jsonl and
.zotsession file below it. Each file becomes one session; a file with an error is not imported. A file that was
imported before is skipped.
"""


def add(commands: Subparsers) -> None:
    """Register `import`."""
    parser = commands.add_parser("import", help="import sessions from files", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("paths", nargs="+", metavar="FILE|DIR", help="session files, or directories of them")
    parser.add_argument("--cwd", metavar="DIR", help="working directory of the sessions (default: as in the file)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    where = place.of(os.environ)
    cwd = "" if args.cwd is None else where.directory(args.cwd)
    results: list[Json] = []
    with link.connect("zotctl", role="admin") as connection:
        for path in map(where.real_path, args.paths) if where.is_remote else _files(args.paths):
            results.append(_import(connection, path, cwd))
            if not args.json:
                _print(results[-1])
    if args.json:
        output.print_json({"v": 1, "files": results})
    elif not results:
        sys.stderr.write("zotctl: no session files found\n")
    return 1 if not results or any("error" in result for result in results) else 0


def _files(paths: Sequence[str]) -> Iterator[str]:
    """Yield absolute paths, because the daemon has another working directory."""
    for path in map(os.path.abspath, paths):
        if not os.path.isdir(path):
            yield path
            continue
        for directory, folders, names in os.walk(path):
            folders.sort()
            yield from (os.path.join(directory, name) for name in sorted(names) if name.endswith(ENDINGS))


def _import(connection: Connection, path: str, cwd: str | None) -> Json:
    with output.progress(f"importing {path}"):
        try:
            made = connection.call("session.import", path=path, cwd=cwd, timeout_s=IMPORT_S)
        except CallError as error:
            return {"file": path, "error": str(error), "code": error.code}
    return {"file": path, "session": child(made, "session"), "known": made.get("known") is True}


def _print(result: Json) -> None:
    if "error" in result:
        sys.stderr.write(one_line(f"{text(result, 'file')}: {text(result, 'error')}") + "\n")
        return
    session = child(result, "session")
    messages = counted(number(session, "message_count"), "message")
    what = "already imported" if result["known"] else messages
    name = text(session, "name")
    print(one_line(f'{text(session, "id")}  "{name}": {what}  ({text(result, "file")})'))
