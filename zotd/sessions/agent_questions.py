"""What another agent asks leave for, decided as a call of ours would be: by rules, by the session's mode, or by a person."""

from collections.abc import Sequence

from zotd.adapters.calls import AgentCall
from zotd.core.permissions import SHELL, Action, PermissionQuery, Ruling
from zotd.permissions.authorization import Authorization
from zotd.permissions.preview import paths_of
from zotd.wire.acp_reports import OfferedOption, ReportedCall

WORDS = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""The kinds of options, the one that we choose first. What holds for longer is kept here, as a rule or a grant."""


async def may(
    authorization: Authorization, key: str, fields: ReportedCall, call: AgentCall, *, cwd: str, home: str | None
) -> bool:
    """Return whether the agent may do what it asks for in `fields`, in the course of `call`, which is on record as `key`.

    Safe to cancel: the question is over then.
    """
    shown = AgentCall(fields) if fields.title is not None else call
    args = shown.args()
    found = await paths_of(shown.kind, None, {"path": _path(shown)}, cwd, home=home)
    query = PermissionQuery(shown.kind, None, False, args, found.spellings, found.is_resolved)
    ruling = authorization.judge(key, query)
    command = args.get("command")
    if ruling.action is not Action.DENY and isinstance(command, str):
        ruling = _by_rule_for_commands(authorization, key, command) or ruling
    if ruling.action is not Action.ASK:
        return ruling.action is Action.ALLOW
    answer = await authorization.ask_during(key, ruling, query, shown.preview(), has_choices=True)
    # Nothing can be sent but an option, so what a person has changed would be ignored.
    return answer is not None and answer.allowed and answer.args in (None, args)


def chosen(options: Sequence[OfferedOption], *, allowed: bool) -> str | None:
    """Return the id of the option that says so; None: there is none, so nothing is decided."""
    for kind in WORDS[allowed]:
        for option in options:
            if option.kind == kind:
                return option.option_id
    return None


def _by_rule_for_commands(authorization: Authorization, key: str, command: str) -> Ruling | None:
    """Return what the user's rules for commands of `bash` say, where they forbid it or want to be asked."""
    ruling = authorization.judge(key, PermissionQuery(SHELL, None, False, {"command": command}))
    return ruling if ruling.source == "rule" and ruling.action is not Action.ALLOW else None


def _path(call: AgentCall) -> str:
    return next(iter(call.paths), "")
