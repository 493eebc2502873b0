"""`zotctl ext record`: writes the frames between the daemon and an extension into a file, for `replay` and `test`."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from zotctl import link
from zotctl.commands import Subparsers
from zotctl.ext import scope
from zotctl.ext.reload import RELOAD_S
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, number, text
from zotd.client.interrupts import InterruptedBySignal, Watch
from zotd.clock import rfc3339
from zotd.exthost import recording
from zotd.exthost.recording import EXTENSION, HOST, RecordedPaths
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl ext record weather weather/recordings/berlin.jsonl --restart
  zotctl ext test weather                                               plays what is in weather/recordings

Records until Ctrl-C. The file has everything that was said: read it before you give it to others.
"""

SENDERS = {"in": EXTENSION, "out": HOST}


def add(actions: Subparsers) -> None:
    """Register `record`."""
    parser = actions.add_parser("record", help="write an extension's protocol frames into a file", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", metavar="EXTENSION", help="name of the extension")
    parser.add_argument("file", metavar="FILE", help="where to write; must not exist")
    parser.add_argument("--restart", action="store_true", help="restart it first, so that its start is recorded, too")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    scope.add_flags(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    watch = Watch()
    cuts: list[bool] = []
    with link.connect("zotctl", watch.wait) as connection, watch:
        chosen = scope.chosen(connection, args)
        paths = _paths(connection, chosen, str(args.name))
        connection.call("ext.tap", chosen, name=args.name)
        with _opened(args) as file, suppress(InterruptedBySignal):
            file.write(recording.head_line(args.name, rfc3339()) + "\n")
            for event in _frames(connection, chosen, args):
                file.write(_line(event, paths))
                file.flush()
                cuts.append(bool(number(event, "cut")))
    sys.stderr.write(f"{len(cuts)} frames in {one_line(str(args.file))}\n")
    if any(cuts):
        sys.stderr.write(f"zotctl: {sum(cuts)} frames were longer than 64 KiB and are cut, so it cannot be replayed\n")
    return 0


def _line(event: Json, paths: RecordedPaths) -> str:
    sender, frame = SENDERS.get(text(event, "direction"), HOST), text(event, "frame").rstrip("\n")
    cut = int(number(event, "cut") or 0)
    return recording.frame_line(sender, frame, time=text(event, "time"), cut=cut, paths=paths) + "\n"


def _frames(connection: Connection, chosen: Json, args: argparse.Namespace) -> Iterator[Json]:
    """Yield the frames from now on, or from the start of the next process on."""
    is_recorded = not args.restart
    if args.restart:
        connection.call("ext.reload", chosen, name=args.name, timeout_s=RELOAD_S)
    if sys.stderr.isatty():
        sys.stderr.write(f"recording {one_line(args.name)}; press Ctrl-C to stop\n")
    for _, event in connection.lines():
        if event.get("type") != "ext_frame":
            continue
        is_recorded = is_recorded or recording.is_hello(text(event, "frame"))
        if is_recorded:
            yield event


def _opened(args: argparse.Namespace) -> TextIO:
    target = Path(args.file)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("w" if args.force else "x", encoding="utf-8")
    except FileExistsError:
        raise ClientError(f"{target} exists; choose another name, or use --force") from None
    except OSError as error:
        raise ClientError(f"{target} cannot be written: {error.strerror}") from error


def _paths(connection: Connection, chosen: Json, name: str) -> RecordedPaths:
    """Return the directories that the recording must not name."""
    found = children(connection.call("ext.list", chosen), "extensions")
    one = next((one for one in found if text(one, "name") == name), {})
    directory, log = text(one, "directory"), text(one, "log")
    home = os.path.dirname(os.path.dirname(log))
    return RecordedPaths(text(one, "cwd"), directory, f"{home}/data/{name}" if home else "")
