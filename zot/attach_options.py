"""The keyword arguments of `Agent.attach`, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from zot.approver import Approver, approver_of
from zot.errors import OptionError
from zot.options import AgentOptions, check_known
from zot.permissions import CanUseTool


class AttachOptions(TypedDict, total=False):
    """The keyword arguments of `Agent.attach`."""

    can_use_tool: CanUseTool
    """Decides about the calls that a person would be asked about, unless another client is first."""
    decide_within_s: float
    """Time limit of `can_use_tool` in seconds, after which the call is denied. Default: 300."""
    env: Mapping[str, str]
    """Says where the daemon is, and is the environment of commands from now on; default: that of this process."""
    socket: str
    """Path of the daemon's socket; default: as `env` says."""
    host: str
    """URL of a daemon on another machine: `wss://host:port`."""
    token_file: str
    ca_file: str


@dataclass(frozen=True, slots=True)
class CheckedAttachOptions:
    """The session and the keyword arguments, after their check."""

    session: str
    """Its id or name."""
    env: Mapping[str, str] | None
    socket: str | None
    host: str | None
    token_file: str | None
    ca_file: str | None
    approver: Approver | None
    """Decides about tool calls in place of a person; None: other clients do."""
    fork_at: int | None = None
    """For a fork that is yet to be made: `seq` of the last message that both sessions have; None: the newest."""


def checked_attach(session: str, options: AttachOptions) -> CheckedAttachOptions:
    """Check the id, names and types; whether there is such a session is found when the agent is opened.

    Raises:
        OptionError: an option is wrong.
    """
    if not _text({"session": session}, "session"):
        raise OptionError("session: the name is empty; `zotctl sessions` lists ids and names")
    for name in options:
        if name == "tools":
            raise OptionError(
                "tools: this session runs in the daemon, which calls no functions of this process; give it an extension"
            )
        if name in AgentOptions.__annotations__ and name not in AttachOptions.__annotations__:
            raise OptionError(f"{name}: chosen when a session is created, and this one exists already")
    check_known("keyword argument", options, AttachOptions.__annotations__)
    return CheckedAttachOptions(
        session=session,
        env=options.get("env"),
        socket=_text(options, "socket"),
        host=_text(options, "host"),
        token_file=_text(options, "token_file"),
        ca_file=_text(options, "ca_file"),
        approver=approver_of(options.get("can_use_tool"), options.get("decide_within_s")),
    )


def _text(options: Mapping[str, object], name: str) -> str | None:
    found = options.get(name)
    if found is not None and not isinstance(found, str):
        raise OptionError(f"{name} must be text, not {found!r:.80}")
    return found
