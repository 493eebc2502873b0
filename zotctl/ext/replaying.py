"""Implements `zotctl ext replay` and `zotctl ext test` with `zotd.exthost.replay`."""

import argparse
import asyncio
import difflib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from zotctl import output
from zotd.client import colour, environment
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.exthost import recording
from zotd.exthost.recording import Frame, FrameDifference, Recording, RecordingError
from zotd.exthost.replay import PATIENCE_S, ReplayReport
from zotd.exthost.replay import replay as replayed
from zotd.sanitize import harmless, one_line

FOLDER = "recordings"
"""Directory beside an extension with its recordings."""

CONTEXT_LINES = 3

MAX_BYTES = 64 * 1024 * 1024
"""Largest recording."""


def replay(args: argparse.Namespace) -> int:
    """Replay one recording, print the result and return the exit code: 1 if the extension did something else."""
    file = Path(args.file)
    report = _played(file, Path(args.extension) if args.extension else _beside(file), args)
    if args.json:
        output.print_json({"v": 1, **_as_json(file, report)})
    else:
        _print(file, report)
    return 0 if report.is_ok else 1


def test(args: argparse.Namespace) -> int:
    """Replay all recordings of an extension; the exit code is 1 if one differs."""
    directory = Path(args.path)
    files = sorted((directory / FOLDER).glob("*.jsonl"))
    if not files:
        raise ClientError(f"there is no recording in {directory / FOLDER}; make one with: zotctl ext record")
    reports = [(file, _played(file, directory, args)) for file in files]
    is_ok = all(report.is_ok for _, report in reports)
    if args.json:
        output.print_json({"v": 1, "ok": is_ok, "recordings": [_as_json(*one) for one in reports]})
        return 0 if is_ok else 1
    for file, report in reports:
        _print(file, report)
    failed = sum(not report.is_ok for _, report in reports)
    output.print_lines([f"{len(files) - failed} of {len(files)} recordings as before"])
    return 0 if is_ok else 1


def _played(file: Path, directory: Path, args: argparse.Namespace) -> ReplayReport:
    cwd = os.path.realpath(args.cwd)
    patience_s = PATIENCE_S if args.timeout is None else float(args.timeout)
    if not patience_s > 0:
        raise ClientError("--timeout is a number of seconds, more than 0")
    env = environment.shared(os.environ)
    try:
        recorded = _read(file)
        recording.check_patterns(args.ignore)
        with output.progress(f"replaying {file.name}"):
            return asyncio.run(
                replayed(recorded, directory, cwd=cwd, env=env, ignore=args.ignore, patience_s=patience_s)
            )
    except RecordingError as error:
        raise ClientError(f"{file} {error}") from error


def _read(file: Path) -> Recording:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordingError(f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise RecordingError("is over 64 MiB")
    try:
        return recording.parse(data.decode())
    except UnicodeDecodeError as error:
        raise RecordingError("is not UTF-8") from error


def _beside(file: Path) -> Path:
    """Return the extension in whose directory a recording is."""
    for folder in file.absolute().parents[:3]:
        if (folder / "extension.json").exists() or any((folder / "tools").glob("[!_]*.py")):
            return folder
    raise ClientError(f"{file} is not in the directory of an extension; name it with --extension DIR")


def _print(file: Path, report: ReplayReport) -> None:
    found = len(report.differences)
    said = "as recorded" if report.is_ok else f"{found} differ" if found else "not played to the end"
    hue = colour.GREEN if report.is_ok else colour.RED
    output.print_lines([f"{one_line(str(file))}: {report.compared} frames, {output.painted(said, hue)}"])
    for one in report.differences:
        output.print_lines(list(_diff(one)))
    if report.failure:
        output.print_lines([one_line(f"  the extension {report.failure}")])
    if not report.is_ok and report.stderr:
        sys.stdout.flush()
        sys.stderr.write(f"\nlast lines of its stderr:\n{harmless(report.stderr)}")


def _diff(one: FrameDifference) -> Iterator[str]:
    where = f"line {one.line}" if one.line else "not in the recording"
    yield f"  {one_line(one.about)}, {where}:"
    before, after = _pretty(one.recorded), _pretty(one.sent)
    for line in list(difflib.unified_diff(before, after, n=CONTEXT_LINES, lineterm=""))[3:]:
        hue = {"-": colour.RED, "+": colour.GREEN}.get(line[:1])
        text = one_line(f"    {line}")
        yield output.painted(text, hue) if hue else text


def _pretty(frame: Frame | None) -> list[str]:
    return [] if frame is None else json.dumps(frame, indent=2, ensure_ascii=False, sort_keys=True).split("\n")


def _as_json(file: Path, report: ReplayReport) -> Json:
    differences = [
        {"about": one.about, "line": one.line, "recorded": one.recorded, "sent": one.sent} for one in report.differences
    ]
    return {
        "file": str(file),
        "ok": report.is_ok,
        "frames": report.compared,
        "differences": differences,
        "failure": report.failure,
        "stderr": report.stderr,
    }
