"""The result of a validation: one finding for each rule of `RULES`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from zotd.exthost.validation.conversation import GoneError

RULES = {
    "manifest": "`extension.json` is valid",
    "start": "its program can be started",
    "hello": "its first frame is `hello`, within 5 s",
    "name": "its `hello` has the manifest's name",
    "ready": "it sends `ready` within 10 s",
    "stays": "it then waits for frames",
    "tools": "its tools can be offered to any model; each Python module is one",
    "hints": "the type hints of its tools' parameters can be described to a model",
    "commands": "its commands can be typed",
    "subscriptions": "it subscribes to existing events",
    "guards": "it answers when it is asked about an event",
    "calls": "it answers calls of its tools and commands, with senseless arguments too",
    "at once": "it answers several questions that are asked at once",
    "answers": "it answers each question once, and nothing else",
    "shutdown": "it ends within 2 s of `shutdown`",
    "unknown": "it ignores frames and fields that it does not know",
    "unicode": "it takes U+2028, U+0085, VT and FF in a string as data",
    "cancel": "it ignores `tool_cancel` of a call that has ended, when it has announced `tool_cancel`",
    "events": "it lives through every event that it subscribed to",
    "frames": "it sends no frame that is unknown or incomplete",
    "stdout": "it prints nothing but frames on stdout, in lines under 4 MiB",
    "end of input": "it ends within 2 s of the end of its stdin, as when zot has died",
    "children": "it leaves no process behind",
}
"""Name and text of each rule, in the order of the report (`docs/extensions.md`)."""


TOLD = 4
"""Number of faults shown for each rule; the others are only counted."""


class Verdict(StrEnum):
    """Outcome of one rule."""

    KEPT = "kept"
    BROKEN = "broken"
    DOUBTFUL = "doubtful"
    """It works, but differently from what its author may expect."""
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The outcome of a rule and what was observed."""

    rule: str
    verdict: Verdict
    sentence: str
    """For the extension's author; one line."""


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The outcome of a validation."""

    name: str
    """Name in the manifest; empty without a valid manifest."""
    findings: tuple[RuleFinding, ...]
    """One for each of `RULES`, in its order."""
    stderr: str
    """The last lines of its stderr."""

    @property
    def is_ok(self) -> bool:
        """True if no rule was broken."""
        return all(finding.verdict is not Verdict.BROKEN for finding in self.findings)


class StoppedError(Exception):
    """A broken rule makes further checks impossible; its finding is recorded."""


class FindingCollector:
    """Collects findings. A broken rule stays broken, whatever later checks find."""

    def __init__(self) -> None:
        self._found: dict[str, RuleFinding] = {}

    def kept(self, rule: str, sentence: str = "") -> None:
        """Record that a rule was kept. Without `sentence`, the text of the rule is used."""
        self._note(RuleFinding(rule, Verdict.KEPT, sentence or RULES[rule]))

    def broken(self, rule: str, sentence: str) -> None:
        """Record that a rule was broken; `sentence` tells the author how."""
        self._note(RuleFinding(rule, Verdict.BROKEN, sentence))

    def doubtful(self, rule: str, faults: Sequence[str]) -> None:
        """Record something that the author should check but that breaks no rule."""
        self._note(RuleFinding(rule, Verdict.DOUBTFUL, _some(faults)))

    def unchecked(self, rule: str, sentence: str) -> None:
        """Record that a rule could not be checked or does not apply."""
        self._note(RuleFinding(rule, Verdict.UNCHECKED, sentence))

    def judge(self, rule: str, faults: Sequence[str], kept: str = "") -> None:
        """Record that a rule was broken in these ways, or kept if there are none."""
        if faults:
            self.broken(rule, _some(faults))
        else:
            self.kept(rule, kept)

    @contextmanager
    def under(self, rule: str, subject: str = "it") -> Iterator[None]:
        """Record the end of a process in this block as a fault of `rule`, and raise StoppedError.

        `subject` begins the sentence.
        """
        try:
            yield
        except GoneError as error:
            self.broken(rule, f"{subject} {error}")
            raise StoppedError from error

    def is_kept(self, rule: str) -> bool:
        """Return True if a rule was checked and kept."""
        finding = self._found.get(rule)
        return finding is not None and finding.verdict is Verdict.KEPT

    def all(self) -> tuple[RuleFinding, ...]:
        """Return a finding for each rule, in the order of `RULES`."""
        missing = "not checked: it did not get that far"
        return tuple(self._found.get(rule) or RuleFinding(rule, Verdict.UNCHECKED, missing) for rule in RULES)

    def _note(self, finding: RuleFinding) -> None:
        earlier = self._found.get(finding.rule)
        # The same rule is checked in several processes; one that keeps it does not excuse another that breaks it.
        if earlier is None or earlier.verdict is not Verdict.BROKEN:
            self._found[finding.rule] = finding


def _some(faults: Sequence[str]) -> str:
    # Without repetitions: one fault often shows in several calls.
    told = list(dict.fromkeys(faults))
    if len(told) > TOLD:
        told[TOLD:] = [f"and {len(told) - TOLD} more"]
    return "; ".join(told)
