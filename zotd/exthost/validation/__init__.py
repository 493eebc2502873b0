"""Checks whether an extension conforms to the protocol, without a daemon (`zotctl ext validate`).

    validate(directory) -> Report       one finding for each rule of `report.RULES`

Each group of rules has its own process, so that a fault is reported once and under its own rule: if a process dies that
otherwise lives, the frames it got are the reason. Tools and commands do real work, so they are called only on request.
Guards are always asked: a guard that cannot handle a harmless call would fail in every session.
"""

from zotd.exthost.validation.calling import Calling
from zotd.exthost.validation.report import RULES, RuleFinding, ValidationReport, Verdict
from zotd.exthost.validation.validator import validate

__all__ = ["RULES", "Calling", "RuleFinding", "ValidationReport", "Verdict", "validate"]
