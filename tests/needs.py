"""Tests that need a program which not every machine has: skipped with its name, and never in CI."""

import os
import shutil

import pytest

NO_SKIPS = "ZOT_TEST_NO_SKIPS"
"""Set by `.ci/run`, which installs everything: a skipped test then fails the run."""

ABSENT = "this machine has no "
"""How a reason begins that names a program; the summary counts them by name."""


def needs(*programs):
    """Skip this test where one of these programs is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{ABSENT}{' and no '.join(missing)}")


def summary(reports):
    """One line that counts the skipped tests by reason, most first; empty when there are none."""
    counts: dict[str, int] = {}
    for report in reports:
        reason = str(report.longrepr[2]).removeprefix("Skipped: ") if report.longrepr else "no reason"
        counts[reason.removeprefix(ABSENT)] = counts.get(reason.removeprefix(ABSENT), 0) + 1
    return ", ".join(f"{reason} ({count})" for reason, count in sorted(counts.items(), key=lambda one: -one[1]))


def allows_skips():
    """Whether a skipped test is fine here."""
    return not os.environ.get(NO_SKIPS)
