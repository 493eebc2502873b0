"""All benchmarks, one after the other, as one table: `python -m benchmarks`, or only those named: `... deltas steps`."""

import argparse
import asyncio
from collections.abc import Mapping

from benchmarks import (
    abort,
    answers,
    archive,
    attach,
    bash,
    checkpoints,
    cold_start,
    complete,
    deltas,
    diagnostics,
    extensions,
    extensions_memory,
    extensions_save,
    extensions_start,
    extensions_stop,
    extras,
    failover,
    family,
    first_delta,
    first_prompt,
    fleet,
    fleet_limits,
    fleet_sessions,
    jail,
    latency,
    memory,
    misbehaviours,
    postgres,
    reload,
    rig,
    sizing,
    slow_client,
    startup,
    steps,
    telemetry,
    template,
    tui,
)
from benchmarks.rig import Measure

MEASURES: Mapping[str, Measure] = {
    "first_delta": first_delta.measure,
    "deltas": deltas.measure,
    "latency": latency.measure,
    "steps": steps.measure,
    "telemetry": telemetry.measure,
    "bash": bash.measure,
    "jail": jail.measure,
    "checkpoints": checkpoints.measure,
    "abort": abort.measure,
    "answers": answers.measure,
    "memory": memory.measure,
    "family": family.measure,
    "cold_start": cold_start.measure,
    "first_prompt": first_prompt.measure,
    "attach": attach.measure,
    "archive": archive.measure,
    "complete": complete.measure,
    "diagnostics": diagnostics.measure,
    "startup": startup.measure,
    "extras": extras.measure,
    "template": template.measure,
    "tui": tui.measure,
    "slow_client": slow_client.measure,
    "extensions": extensions.measure,
    "extensions_start": extensions_start.measure,
    "extensions_memory": extensions_memory.measure,
    "extensions_stop": extensions_stop.measure,
    "extensions_save": extensions_save.measure,
    "reload": reload.measure,
    "misbehaviours": misbehaviours.measure,
}

ON_REQUEST: Mapping[str, Measure] = {
    "checkpoints_large": checkpoints.measure_large,
    "postgres": postgres.measure,
    "fleet": fleet.measure,
    "failover": failover.measure,
    "sizing": sizing.measure,
    "fleet_limits": fleet_limits.measure,
    "fleet_sessions": fleet_sessions.measure,
}
"""What takes many minutes, or needs a server of PostgreSQL on this machine, and is measured only by name."""


def main() -> None:
    """Measure what is named, or all."""
    known = {**MEASURES, **ON_REQUEST}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast is it here?")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of: {', '.join(known)}; by default all but {', '.join(ON_REQUEST)}",
    )
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in known]:
        parser.error(f"nothing measures {unknown[0]}; there are {', '.join(known)}")
    asyncio.run(rig.show([known[name] for name in names or MEASURES]))


if __name__ == "__main__":
    main()
