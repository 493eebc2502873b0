"""Does an extension keep to the protocol? It is started as the host would, alone and without a daemon, and questioned.

    validate(directory) -> Report       one finding for each rule of `report.RULES`

Each group of rules has a process of its own, so that one fault is told once, under its own name: what lets a process
die that otherwise lives is what it was sent. Tools and commands do real work, so they are called only when the caller
asks for it; guards are asked, for a guard that minds the question about a harmless call would mind every session.
"""

from zotd.exthost.validation.calling import Calling
from zotd.exthost.validation.report import RULES, RuleFinding, ValidationReport, Verdict
from zotd.exthost.validation.validator import validate

__all__ = ["RULES", "Calling", "RuleFinding", "ValidationReport", "Verdict", "validate"]
