"""`zotctl ext tap`: prints the frames between the daemon and an extension as they are sent."""

import argparse
import json
import re
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.ext import scope
from zotd.client import colour
from zotd.client.blocking import Json
from zotd.client.fields import number, text
from zotd.client.interrupts import Watch
from zotd.sanitize import json_line, one_line

SIGNS = {"in": ("→", colour.GREEN), "out": ("←", colour.CYAN)}
"""Sign and colour of frames from the extension and to it."""

EPILOG = """\
examples:
  zotctl ext tap weather
  zotctl ext tap weather --only tool_call,tool_result --json | jq -r .frame

→ marks a frame from the extension, ← a frame to it. A response is followed by the time since its request.
"""

_TYPE = re.compile(r'"type"\s*:\s*"([^"\\]*)"')
"""The type of a truncated frame, which is no longer valid JSON."""


def add(actions: Subparsers) -> None:
    """Register `tap`."""
    parser = actions.add_parser("tap", help="print an extension's protocol frames until Ctrl-C", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", metavar="EXTENSION", help="name of the extension")
    parser.add_argument("--only", metavar="TYPES", help="only frames of these types, comma-separated")
    scope.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the events as lines of JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    only = None if args.only is None else frozenset(str(args.only).split(","))
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        connection.call("ext.tap", scope.chosen(connection, args), name=args.name)
        if sys.stderr.isatty():
            sys.stderr.write(f"watching {one_line(args.name)}; press Ctrl-C to stop\n")
        for line, event in connection.lines():
            if event.get("type") == "ext_frame" and (only is None or _type(event) in only):
                sys.stdout.write((json_line(line.decode()) if args.json else _shown(event)) + "\n")
                sys.stdout.flush()
    return 0


def _type(event: Json) -> str:
    frame = text(event, "frame")
    try:
        decoded: object = json.loads(frame)
    except (ValueError, RecursionError):
        found = _TYPE.search(frame)
        return found[1] if found else ""
    return text(decoded, "type") if isinstance(decoded, dict) else ""


def _shown(event: Json) -> str:
    sign, hue = SIGNS.get(text(event, "direction"), ("?", colour.RED))
    left_out = number(event, "cut")
    more = f" … {left_out} more bytes" if left_out else ""
    latency = event.get("latency_s")
    took = f"  {latency * 1000:.1f} ms" if isinstance(latency, int | float) else ""
    frame = one_line(text(event, "frame").rstrip("\n"))
    return f"{text(event, 'time')[11:23]} {output.painted(sign, hue)} {output.painted(frame, hue)}{more}{took}"
