"""`zotctl sandbox log`: what commands have connected to."""

import os

import msgspec

from zotctl import output
from zotd import paths
from zotd.proxy.outcomes import ProxyOutcome
from zotd.proxy.traffic_log import TrafficRecord, log_path, read_log


def show(*, who: str | None, only_refused: bool, as_json: bool) -> int:
    """Print the requests in the log, oldest first; `who`: only those of this session."""
    records = read_log(log_path(paths.zot_home(os.environ)))
    wanted = [
        record
        for record in records
        if who in {None, record.who} and (not only_refused or record.outcome is ProxyOutcome.REFUSED)
    ]
    if as_json:
        for record in wanted:
            output.print_json(msgspec.to_builtins(record))
        return 0
    output.print_table(
        ["TIME", "WHO", "HOST", "OUTCOME", "SENT", "RECEIVED", "SECONDS", "REASON"], list(map(_row, wanted))
    )
    return 0


def _row(record: TrafficRecord) -> list[str]:
    where = f"[{record.host}]" if ":" in record.host else record.host
    moment = record.time[:19].replace("T", " ")
    figures = (str(record.sent), str(record.received), f"{record.seconds:.3f}")
    return [moment, record.who, f"{where}:{record.port}", record.outcome.value, *figures, record.reason]
