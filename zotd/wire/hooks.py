"""Hooks: commands that run at events of a session, in the format of Claude Code (`docs/hooks.md`).

    {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh", "timeout": 10}]}]}}

The host reads which hooks there are, the bridge runs them. Other programs use the same files, so unknown fields are
ignored. An entry that cannot be used is left out and described in a sentence.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from zotd.wire.base import BadFrameError, Frozen, convert, decode

DEFAULT_S = 60.0
"""Time limit of a hook that names none, in seconds."""

MAX_S = 600.0
"""Longest time limit that a hook may name. Some files give milliseconds; the format has seconds."""

PROMPT_S = 25.0
"""Longest time limit of hooks that run before a prompt is accepted: clients wait 30 s for that."""

_NAMES = re.compile(r"[\w|, -]*", re.ASCII)
"""A matcher of names, separated by `|`; any other one is a regular expression."""

CLAUDE_NAMES: Mapping[str, str] = {
    "bash": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "fetch": "WebFetch",
    "web_search": "WebSearch",
    "grep": "Grep",
    "glob": "Glob",
    "skill": "Skill",
    "task": "Task",
}
"""The built-in tools, and what Claude Code calls them."""


class HookFileError(ValueError):
    """A file of hooks cannot be used; the message is one sentence."""


class HookEvent(StrEnum):
    """The events at which hooks run."""

    SESSION_START = "SessionStart"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    NOTIFICATION = "Notification"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    STOP = "Stop"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    SESSION_END = "SessionEnd"


UNMATCHED = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP})
"""Events whose hooks run whatever their matcher says."""

BEFORE_PROMPT = frozenset({HookEvent.USER_PROMPT_SUBMIT, HookEvent.SESSION_START})
"""Events whose hooks have `PROMPT_S` at most."""


class CommandHook(Frozen, frozen=True):
    """A command that runs at an event."""

    event: HookEvent
    command: str
    args: tuple[str, ...] | None = None
    """Arguments of the program `command`, which then is started without a shell."""
    matcher: str = ""
    limit_s: float = DEFAULT_S
    is_async: bool = False
    """It is not waited for, and its answer has no effect."""

    def concerns(self, names: Collection[str]) -> bool:
        """Whether it runs for an event that has any of these names, such as those of a tool."""
        if self.event in UNMATCHED or self.matcher in {"", "*"}:
            return True
        if _NAMES.fullmatch(self.matcher):
            return not {name.strip() for name in re.split(r"[|,]", self.matcher)}.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)


class HookFile(Frozen, frozen=True):
    """What a file says of hooks."""

    hooks: tuple[CommandHook, ...] = ()
    faults: tuple[str, ...] = ()
    """A sentence for each entry that is not used."""
    disables_all: bool = False
    """No hooks at all are wanted, whichever file has them."""


class _Group(Frozen, frozen=True):
    hooks: list[object]
    matcher: str = ""


class _Entry(Frozen, frozen=True):
    type: str
    command: str = ""
    args: tuple[str, ...] | None = None
    timeout: float | None = None
    is_async: bool = msgspec.field(name="async", default=False)
    condition: str = msgspec.field(name="if", default="")
    shell: str = "bash"


def read_hooks(data: bytes) -> HookFile:
    """Return the hooks of a file, in its order. A file without a `hooks` object has none.

    Raises:
        HookFileError: the file as a whole is invalid.
    """
    try:
        fields = decode(data, dict[str, object])
    except BadFrameError as error:
        raise HookFileError(str(error)) from error
    events = fields.get("hooks", {})
    if not isinstance(events, dict):
        raise HookFileError("its `hooks` is not an object of events")
    hooks: list[CommandHook] = []
    faults: list[str] = []
    for name, groups in events.items():
        for one in _of_event(name, groups):
            if isinstance(one, CommandHook):
                hooks.append(one)
            else:
                faults.append(one)
    return HookFile(tuple(hooks), tuple(faults), fields.get("disableAllHooks") is True)


def fingerprint(hooks: Sequence[CommandHook]) -> str:
    """Return a digest of the hooks, 64 digits."""
    return hashlib.sha256(msgspec.json.encode(hooks)).hexdigest()


def _of_event(name: str, groups: object) -> Iterator[CommandHook | str]:
    if name not in set(HookEvent):
        yield f"the event {name[:80]} is not used; the events are {', '.join(HookEvent)}"
        return
    if not isinstance(groups, list):
        yield f"{name} is not a list"
        return
    for number, group in enumerate(groups, 1):
        yield from _of_group(HookEvent(name), f"{name}, entry {number}", group)


def _of_group(event: HookEvent, where: str, group: object) -> Iterator[CommandHook | str]:
    try:
        read = convert(_without_null(group), _Group)
        re.compile("" if read.matcher == "*" else read.matcher)
    except BadFrameError as error:
        yield f"{where}: {error}"
        return
    except re.error as error:
        yield f"{where}: its matcher is not a regular expression: {error}"
        return
    yield from (_hook(event, read.matcher, where, entry) for entry in read.hooks)


def _hook(event: HookEvent, matcher: str, where: str, entry: object) -> CommandHook | str:
    try:
        read = convert(_without_null(entry), _Entry)
    except BadFrameError as error:
        return f"{where}: {error}"
    fault = _fault(read)
    if fault is not None:
        return f"{where}: {fault}"
    limit_s = min(DEFAULT_S if read.timeout is None else read.timeout, PROMPT_S if event in BEFORE_PROMPT else MAX_S)
    return CommandHook(event, read.command, read.args, matcher, limit_s, read.is_async)


def _fault(entry: _Entry) -> str | None:
    if entry.type != "command":
        return f'a hook of the type "{entry.type[:80]}" is not used, only "command"'
    if not entry.command.strip() or "\0" in entry.command:
        return "it has no `command` to run"
    if entry.condition:
        return "it has `if`, which is not supported, and would run more often than it says; use a matcher"
    if entry.shell != "bash":
        return f'its `shell` "{entry.shell[:80]}" is not "bash"'
    if entry.timeout is not None and not entry.timeout > 0:
        return "its `timeout` is not a number of seconds above 0"
    return None


def _without_null(value: object) -> object:
    return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value
