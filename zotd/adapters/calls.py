"""The tool calls of another agent, as a session shows and records them."""

import difflib
import json
from collections.abc import Sequence

import msgspec

from zotd.core.depth import is_too_deep
from zotd.core.ports import ToolOutcome
from zotd.wire.acp_reports import ReportedCall, ReportedOutput
from zotd.wire.content import Text

KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"})
"""The kinds of ACP. A call is recorded under its kind: the agents' own names of tools are not part of the protocol."""

OTHER = "other"

ARGUMENT_BYTES = 256 * 1024
"""Longest arguments that are recorded, as JSON; of longer ones only the title is."""

OUTPUT_CHARS = 50 * 1024
"""Longest output that is recorded, as for our own tools."""

DIFF_LINES = 2_000
"""Longest file, in lines, of which a change is compared line by line; computing it blocks."""

TITLE_CHARS = 2_000

ENDED = frozenset({"completed", "failed"})


class AgentCall:
    """A tool call: what the agent has said of it so far."""

    def __init__(self, fields: ReportedCall) -> None:
        self.id = fields.tool_call_id
        """The agent's id of it."""
        self.key = ""
        """Our id; empty until the call is on record."""
        self.kind = OTHER
        self.paths: Sequence[str] = ()
        """Files that it works on."""
        self._title = ""
        self._status = "pending"
        self._raw: object = None
        self._output: Sequence[ReportedOutput] = ()
        self._raw_output: object = None
        self._is_asked = False
        self.update(fields)

    @property
    def is_ready(self) -> bool:
        """Whether it can be shown: agents announce a call before they know its arguments."""
        return self._is_asked or bool(self._raw) or bool(self._output) or self._status != "pending"

    @property
    def has_ended(self) -> bool:
        """It was reported as completed or failed."""
        return self._status in ENDED

    def update(self, fields: ReportedCall) -> None:
        """Take over what is said anew."""
        self._title = self._title if fields.title is None else fields.title[:TITLE_CHARS]
        self._status = fields.status or self._status
        self._output = self._output if fields.content is None else fields.content
        self._raw = self._raw if fields.raw_input is None else fields.raw_input
        self._raw_output = self._raw_output if fields.raw_output is None else fields.raw_output
        if fields.kind is not None:
            self.kind = fields.kind if fields.kind in KINDS else OTHER
        if fields.locations is not None:
            self.paths = [location.path for location in fields.locations]

    def asked(self) -> None:
        """The agent waits for leave to make it."""
        self._is_asked = True

    def began(self, key: str) -> None:
        """It is on record as the call `key`."""
        self.key = key

    def args(self) -> dict[str, object]:
        """Return its arguments for the record: the title, and what the agent calls its raw input."""
        raw = self._raw if isinstance(self._raw, dict) else {} if self._raw is None else {"input": self._raw}
        args: dict[str, object] = {"title": self._title, **raw}
        if not raw and self.paths:
            args["paths"] = list(self.paths)
        is_long = len(msgspec.json.encode(args)) > ARGUMENT_BYTES
        return {"title": self._title} if is_long or is_too_deep(args) else args

    def preview(self) -> str:
        """Return what it would do, for people: its title, and what it shows, such as a diff."""
        shown = self.text()
        args = {name: value for name, value in self.args().items() if name != "title" and not shown}
        rest = shown or (json.dumps(args, indent=2, ensure_ascii=False) if args else "")
        return f"{self._title or self.kind}\n\n{rest}" if rest else self._title or self.kind

    def text(self) -> str:
        """Return what it shows."""
        shown = "\n".join(filter(None, map(_text, self._output)))
        if not shown and isinstance(self._raw_output, str):
            shown = self._raw_output
        rest = len(shown) - OUTPUT_CHARS
        return f"{shown[:OUTPUT_CHARS]}\n[{rest:,} more characters are left out]" if rest > 0 else shown

    def outcome(self) -> ToolOutcome:
        """Return its result."""
        return ToolOutcome([Text(self.text() or "(no output)")], is_error=self._status == "failed")


def _text(part: ReportedOutput) -> str:
    if part.type == "diff" and part.path is not None and part.new_text is not None:
        return _diff(part.path, part.old_text or "", part.new_text)
    if part.content is None:
        return ""
    return part.content.text or part.content.uri or ""


def _diff(path: str, old: str, new: str) -> str:
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > DIFF_LINES:
        return f"{path} is changed; too long to be compared ({len(new):,} characters)"
    return "\n".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm=""))
