"""The keyword arguments of `Agent`, checked."""

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, get_args

from zot.approver import Approver, approver_of, seconds_of
from zot.errors import OptionError
from zot.function_tools import as_tools
from zot.permissions import CanUseTool
from zotd.embed.function_tool import AnyFunctionTool
from zotd.sdk.shapes import Function
from zotd.wire.api import SessionCreate
from zotd.wire.base import BadFrameError, convert
from zotd.wire.content import Message

BuiltinTool = Literal[
    "bash",
    "edit",
    "fetch",
    "glob",
    "grep",
    "job_output",
    "job_stop",
    "job_wait",
    "plan",
    "read",
    "skill",
    "web_search",
    "write",
]

Mode = Literal["yolo", "workspace", "ask", "read-only"]

Reasoning = Literal["off", "minimum", "low", "medium", "high", "xhigh", "max"]


class AgentOptions(TypedDict, total=False):
    """The keyword arguments of `Agent`; what is absent is as zot's configuration says."""

    model: str
    provider: str
    """The service that runs the model; default: one that lists `model`, or for which there is a key."""
    base_url: str
    """A server with the provider's API; it may have any model."""
    api_key: str
    """Default: from the environment, or as stored by `zotctl auth`."""
    agent: str
    """Another agent that answers, such as `claude`: an adapter, as of `zot --agent`. It has its own model, tools and login."""
    cwd: str | os.PathLike[str]
    """Directory in which the tools work; default: the current one."""
    env: Mapping[str, str]
    """Environment of commands, and a source of API keys; default: that of this process."""
    system_prompt: str
    """Replaces zot's own."""
    append_system_prompt: Sequence[str]
    tools: Sequence[Function]
    """Functions of this program that the model may call; see `tool`."""
    builtin_tools: Sequence[BuiltinTool]
    """Default: all. Empty: none."""
    mode: Mode
    """`yolo` runs every tool; `workspace` runs commands in a jail of `cwd` and asks `can_use_tool` about what leads out of it
    and about functions of this program; `ask` asks about tools that change something; `read-only` denies them.
    Default: as zot's configuration says, otherwise `yolo`."""
    can_use_tool: CanUseTool
    """Decides about the calls that a person would be asked about; the mode is then `ask` unless another one is given.
    A coroutine function runs on the agent's event loop, another one in a thread. An exception denies the call."""
    decide_within_s: float
    """Time limit of `can_use_tool` and of each guard in seconds, after which the call is denied. Default: 300."""
    reasoning: Reasoning
    max_steps: int
    """Most model requests of a run."""
    budget_usd: float
    """Most that the agent may spend in US dollars, while it is open."""
    budget_tokens: int
    fallback: Sequence[str]
    """Models to ask when this one fails, best first: `provider/model`."""
    resume: Sequence[Message]
    """Messages of an earlier conversation, which this one continues: `RunResult.messages`."""
    extensions: bool
    """Start the extensions and MCP servers of the user and of a trusted `cwd`. Default: False."""


OF_THE_PROGRAM = frozenset(
    {"tools", "builtin_tools", "can_use_tool", "cwd", "decide_within_s", "env", "extensions", "resume"}
)
"""Options that a session does not have, or not in this form."""


@dataclass(frozen=True, slots=True)
class CheckedOptions:
    """The keyword arguments, after their check."""

    given: AgentOptions
    session: Mapping[str, object]
    """Options of `Runtime.open`."""
    env: Mapping[str, str] | None
    tools: Sequence[AnyFunctionTool]
    resume: Sequence[Message]
    decide_within_s: float
    approver: Approver | None
    """Decides about tool calls in place of a person; None: calls that need an approval are denied."""


def checked(options: AgentOptions) -> CheckedOptions:
    """Check names, types and words; which models there are is checked when the agent is opened.

    Raises:
        OptionError: an option is wrong.
        TypeError: a function cannot be a tool.
    """
    check_known("keyword argument", options, AgentOptions.__annotations__)
    _check_word(options, "mode", get_args(Mode))
    _check_word(options, "reasoning", get_args(Reasoning))
    if options.get("agent") and options.get("tools"):
        raise OptionError(f"tools: {options['agent']} has its own tools, and cannot be given functions of this program")
    builtin = options.get("builtin_tools")
    check_known("built-in tool", builtin or (), get_args(BuiltinTool))
    session: dict[str, object] = {name: value for name, value in options.items() if name not in OF_THE_PROGRAM}
    if "can_use_tool" in options:
        session.setdefault("mode", "ask")
    session.update(
        cwd=str(Path(options.get("cwd", ".")).resolve()),
        tools=None if builtin is None else list(builtin),
        no_ext=not options.get("extensions", False),
    )
    session.update(
        {name: list(_list(session, name)) for name in ("append_system_prompt", "fallback") if name in session}
    )
    try:
        convert({name: value for name, value in session.items() if name != "api_key"}, SessionCreate)
    except BadFrameError as error:
        raise OptionError(str(error)) from error
    there = get_args(BuiltinTool) if builtin is None else builtin
    return CheckedOptions(
        given=options,
        session=session,
        env=options.get("env"),
        tools=as_tools(options.get("tools", ()), there),
        resume=_messages(options.get("resume", ())),
        decide_within_s=seconds_of(options.get("decide_within_s")),
        approver=_approver(options),
    )


def _approver(options: AgentOptions) -> Approver | None:
    approver = approver_of(options.get("can_use_tool"), options.get("decide_within_s"))
    mode = options.get("mode", "ask")
    if approver is not None and mode in {"yolo", "read-only"}:
        raise OptionError(
            f'can_use_tool would not be called in the mode "{mode}", which asks about nothing; leave mode out'
        )
    return approver


def check_known(kind: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise OptionError for the first name that is not known, with the nearest one that is."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(known)}"
            raise OptionError(f'unknown {kind} "{name}"; {hint}')


def _check_word(options: AgentOptions, name: Literal["mode", "reasoning"], words: Sequence[str]) -> None:
    if name in options:
        check_known(name, [options[name]], words)


def _list(session: Mapping[str, object], name: str) -> Sequence[object]:
    value = session[name]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionError(f"{name} must be a list of texts, not {value!r:.80}")
    return value


def _messages(found: Sequence[object]) -> Sequence[Message]:
    messages: list[Message] = []
    for one in found:
        if not isinstance(one, Message):
            raise OptionError(f"resume must be the messages of an earlier result, not {one!r:.80}")
        messages.append(one)
    return tuple(messages)
