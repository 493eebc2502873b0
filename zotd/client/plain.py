"""A session's events as plain text, in order: for pipes, screen readers and the plain chat."""

from collections.abc import Callable

from zotd.client import colour, model_switch
from zotd.client.blocking import Json
from zotd.client.fields import child, children, spoken, strings, text
from zotd.sanitize import harmless
from zotd.wire.plan import PlanStep, step_lines

SUMMARY_CHARS = 100
"""Length of a call's arguments, or of a failed result, on its line."""


class Plain:
    """Formats events, and remembers whether a line is open, so that each item starts on a new line."""

    def __init__(self, *, has_colours: bool = False, names_roles: bool = False) -> None:
        """`has_colours`: highlight what needs attention. `names_roles`: write who speaks in front of each message."""
        self._has_colours = has_colours
        self._you, self._zot = ("you: ", "zot: ") if names_roles else ("", "")
        self._in_line = False
        self._streamed = False
        self._panels: dict[tuple[str, str], str] = {}

    def text(self, event: Json) -> str:
        """Return the text for the next event; empty for most events."""
        match event.get("type"):
            case "assistant_start":
                self._streamed = False
                return ""
            case "text_delta":
                return self._delta(text(event, "delta"))
            case "assistant_message":
                return "" if self._streamed else self._line(self._said(event))
            case "user_message":
                return self._line(self._asked(event))
            case "ext_panel" | "ext_panel_closed":
                return self._panel(event)
            case kind:
                note = _NOTES.get(str(kind))
                return self._line(note(event), _colour(event)) if note else ""

    def message(self, message: Json) -> str:
        """Return the text for a message of a snapshot; empty for tool results."""
        match message.get("role"):
            case "user":
                return self._line(self._asked(message))
            case "assistant":
                return self._line(self._said(message))
            case _:
                return ""

    def end(self) -> str:
        """Return the text that ends an open line; empty if none is open."""
        return self._break()

    def _delta(self, words: str) -> str:
        if self._streamed or not words:
            return self._inline(words)
        self._streamed = True
        return f"{self._break() if self._zot else ''}{self._zot}{self._inline(words)}"

    def _said(self, message: Json) -> str:
        words = spoken(message)
        return f"{self._zot}{words}" if words else ""

    def _asked(self, message: Json) -> str:
        """Return a prompt, or a user's command; the text of a command already begins with `$`."""
        words = spoken(message)
        if child(message, "shell"):
            return words
        return f"{self._you}{words}" if self._you else "> " + words.replace("\n", "\n> ")

    def _inline(self, words: str) -> str:
        words = harmless(words)
        if words:
            self._in_line = not words.endswith("\n")
        return words

    def _panel(self, event: Json) -> str:
        """Return the panel if it differs from what was shown last: an extension may redraw it every second."""
        key = text(event, "extension"), text(event, "panel_id")
        head, foot = ([words] if words else [] for words in (text(event, "title"), text(event, "footer")))
        drawn = "\n".join(f"| {line}" for line in (*head, *strings(event, "lines"), *foot))
        before = self._panels.pop(key, "")
        if event.get("type") == "ext_panel_closed":
            return self._line(f"({key[0]} closed its panel)")
        self._panels[key] = drawn
        return self._line(drawn) if drawn != before else ""

    def _line(self, words: str, hue: str = "") -> str:
        if not words:
            return ""
        shown = harmless(words)
        return f"{self._break()}{colour.painted(shown, hue) if hue and self._has_colours else shown}\n"

    def _break(self) -> str:
        ended = "\n" if self._in_line else ""
        self._in_line = False
        return ended


def _call(event: Json) -> str:
    values = [value for value in child(event, "args").values() if isinstance(value, str | int | float)]
    return f"* {text(event, 'name')} {_short(' '.join(str(value) for value in values))}"


def _result(event: Json) -> str:
    extension = text(event, "extension")
    if event.get("is_error") is not True:
        return f"  ({extension})" if extension else ""
    whose = f"{extension} " if extension else ""
    return f"  {whose}failed: {_short(spoken(event))}"


def _step_end(event: Json) -> str:
    return "(aborted)" if event.get("stop") == "aborted" else ""  # errors have an event of their own


def _error(event: Json) -> str:
    return f"error: {text(event, 'message')}"


def _retry(event: Json) -> str:
    return f"({text(event, 'reason').rstrip('.')}; trying again in {text(event, 'delay_s')} s)"


def _switched(event: Json) -> str:
    model = f"{text(event, 'provider')}/{text(event, 'model')}"
    return f"({model_switch.sentence(model, own=event.get('own') is True, reason=text(event, 'reason'))})"


def _own_text(event: Json) -> str:
    return text(event, "text")


def _guard_note(event: Json) -> str:
    return f"{text(event, 'extension')}: {text(event, 'text')}"


def _ext_note(event: Json) -> str:
    """Return the line with its level in words, because colours may be off."""
    level = text(event, "level")
    said = f" ({level})" if level in {"warn", "error"} else ""
    return f"{text(event, 'extension')}{said}: {text(event, 'message')}"


def _question(event: Json) -> str:
    words = text(event, "preview") or " ".join(str(value) for value in child(event, "args").values())
    return f"(waiting for approval: {text(event, 'tool')} {_short(words)}; zotctl approve {text(event, 'approval')})"


def _decision(event: Json) -> str:
    by, reason = text(event, "by"), text(event, "reason")
    if not by:
        return f"(no decision: {reason})"
    done = "allowed" if text(event, "decision") == "allow" else "denied"
    return f"({by} has {done} it{f': {reason}' if reason else ''})"


def _plan(event: Json) -> str:
    plan = child(event, "plan")
    steps = [PlanStep(text(step, "text"), text(step, "state")) for step in children(plan, "steps")]
    if not steps:
        return ""
    why = f": {text(plan, 'comment')}" if text(plan, "comment") else ""
    return "\n".join([f"plan ({text(plan, 'status')}{why})", *(f"  {line}" for line in step_lines(steps))])


_NOTES: dict[str, Callable[[Json], str]] = {
    "tool_call": _call,
    "tool_result": _result,
    "turn_end": _step_end,
    "error": _error,
    "blocked": _error,
    "compact_done": lambda _: "(compacted)",
    "retry": _retry,
    "model_switched": _switched,
    "interrupted": _own_text,
    "plan": _plan,
    "rewound": lambda event: f"(rewound to message {text(event, 'to')})",
    "forked": lambda event: f"(forked from {text(event, 'file') or text(event, 'origin')})",
    "notice": _own_text,
    "guard_note": _guard_note,
    "ext_display": _own_text,
    "ext_notify": _ext_note,
    "ext_insert": lambda event: f"(suggested) {text(event, 'text')}",
    "approval_requested": _question,
    "approval_resolved": _decision,
}
"""Formatters of events that are shown as a line; nothing is shown if the result is empty."""

_COLOURS = {"error": colour.RED, "blocked": colour.RED, "guard_note": colour.YELLOW}
"""Text by type of event."""

_LEVELS = {"info": colour.CYAN, "success": colour.GREEN, "warn": colour.YELLOW, "error": colour.RED}
"""Prefix by level of a note."""


def _colour(event: Json) -> str:
    kind = text(event, "type")
    if kind == "ext_notify":
        return _LEVELS.get(text(event, "level"), "")
    return _COLOURS.get(kind, colour.RED if event.get("is_error") is True else "")


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= SUMMARY_CHARS else line[: SUMMARY_CHARS - 1] + "…"
