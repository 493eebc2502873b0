"""Implements `zotctl ext validate` with `zotd.exthost.validation`.

Imports the extension host of the daemon, so that the extension is checked by the code that will run it. Runs it in this
process, because a broken extension in the daemon would affect every session.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from zotctl import output
from zotd.client import environment
from zotd.client.errors import ClientError
from zotd.exthost.validation import RULES, Calling, ValidationReport, Verdict, validate
from zotd.sanitize import harmless

MARKS = {Verdict.KEPT: "✓", Verdict.BROKEN: "✗", Verdict.DOUBTFUL: "!", Verdict.UNCHECKED: "\N{EN DASH}"}


def run(args: argparse.Namespace) -> int:
    """Validate, print the result and return the exit code: 1 if a rule is broken."""
    calling = None if args.call is None else Calling(args.call, _arguments(args))
    if args.args is not None and not args.call:
        raise ClientError("--args needs a tool: --call TOOL --args JSON")
    with output.progress("checking"):
        env = environment.shared(os.environ)
        report = asyncio.run(validate(Path(args.path), env=env, cwd=os.getcwd(), calling=calling))
    (_print_json if args.json else _print)(report)
    return 0 if report.is_ok else 1


def _print(report: ValidationReport) -> None:
    output.print_table(
        ["", "RULE", "RESULT"], [[MARKS[one.verdict], one.rule, one.sentence] for one in report.findings]
    )
    if not report.is_ok and report.stderr:
        sys.stdout.flush()
        sys.stderr.write(f"\nlast lines of its stderr:\n{harmless(report.stderr)}")


def _print_json(report: ValidationReport) -> None:
    findings = [
        {"rule": one.rule, "about": RULES[one.rule], "verdict": one.verdict, "sentence": one.sentence}
        for one in report.findings
    ]
    output.print_json({"v": 1, "name": report.name, "ok": report.is_ok, "findings": findings, "stderr": report.stderr})


def _arguments(args: argparse.Namespace) -> dict[str, object]:
    try:
        arguments = json.loads(args.args or "{}")
    except ValueError as error:
        raise ClientError(f"--args is not valid JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ClientError("--args is not a JSON object")
    return arguments
