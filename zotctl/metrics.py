"""`zotctl metrics`: prints the daemon's gauges and counters."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.sanitize import one_line
from zotd.wire.base import BadFrameError, convert
from zotd.wire.reports import Metrics

EPILOG = """\
examples:
  zotctl metrics
  zotctl metrics --json | jq .rss_bytes
  zotctl metrics --prometheus > /var/lib/prometheus/node-exporter/zot.prom

Values from `connections` on are counted since the daemon started. --json and --prometheus also have the figures of model
requests, tools and approvals, by model, tool and working directory. The WebSocket door serves the same text as
--prometheus at /metrics. Does not start the daemon.
"""

APART = frozenset({"v", "families"})
"""Fields that are no figure of one number."""


def add(commands: Subparsers) -> None:
    """Register `metrics`."""
    parser = commands.add_parser("metrics", help="show the daemon's metrics", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as JSON")
    form.add_argument("--prometheus", action="store_true", help="print all metrics in the text format of Prometheus")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl", start=False) as connection:
        found = connection.call("daemon.metrics")
    if args.json:
        output.print_json(found)
    elif args.prometheus:
        _print_prometheus(found)
    else:
        for name, value in found.items():
            if name not in APART:
                print(one_line(f"{name:12} {'unknown' if value is None else value}"))
    return 0


def _print_prometheus(found: Json) -> None:
    from zotd.wire.exposition import exposition  # noqa: PLC0415  (imports prometheus-client, which takes 0.1 s)

    try:
        metrics = convert(found, Metrics)
    except BadFrameError as error:
        raise ClientError(f"the daemon's metrics are not those of this version: {error}") from error
    output.print_text(exposition(metrics).decode())
