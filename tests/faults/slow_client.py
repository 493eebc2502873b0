"""16 clients of one session with 2,000 events a second, and one of them reads nothing: the benchmark, judged."""

import time

from benchmarks import rig, slow_client
from tests.faults.row import Options, Row


async def run(_: Options) -> Row:
    """Two rounds of 12 s, whatever the share: it takes 5 s until somebody is cut, and memory has to be compared."""
    start = time.monotonic()
    found = await slow_client.compare()
    p99 = rig.percentile(found.beside.ms, 99)
    return Row(
        check=f"{slow_client.CLIENTS} clients, {slow_client.RATE:,} events/s, one never reads",
        must_give="the one is cut within 5 s; the others lose 0, p99 <= 20 ms; <= 4 MiB extra memory",
        got=f"cut after {found.beside.cut_s:.1f} s; {found.beside.lost} lost, p99 {p99:.1f} ms; "
        f"{found.grown_mib:+.1f} MiB",
        ok=found.is_met,
        command="python -m tests.faults slow_client",
        seconds=time.monotonic() - start,
    )
