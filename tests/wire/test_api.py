"""The command table matches the specification, and the handlers match the table."""

from collections import Counter
from functools import partial
from inspect import iscoroutinefunction, signature
from typing import Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from tests.api.handlers import HANDLERS
from zotd.api.dispatch import Invocation
from zotd.wire import api
from zotd.wire.api import BY_NAME, COMMANDS, Mutation, Role
from zotd.wire.base import Frozen, decode, encode
from zotd.wire.errors import Code

ROLES = {
    Role.READ: """
        hello ping
        session.list session.get session.history session.image session.search session.tree attach detach presence presence.update
        subscribe push.key
        get_state get_messages get_models model.show complete prompt.history workspace.info session.changes session.plan session.jobs queue.list approval.list grant.list channel.list ext.list ext.logs ext.doctor
        daemon.status fleet.list fleet.ready daemon.metrics usage.report users.list auth.list
        session.family agents.list timer.list diagnostics.list batch.list batch.results
    """,
    Role.SUBMIT: """
        session.create session.configure session.rename session.fork session.rewind session.undo session.redo session.plan_edit session.job_move session.job_stop
        session.export session.close session.mcp_servers session.side_question
        prompt abort retry compact queue.withdraw queue.move run_command clear set_model set_reasoning
        timer.add timer.edit timer.pause timer.resume timer.remove timer.run batch.submit batch.cancel
        panel.key panel.resize panel.close ext.reload ext.tap push.subscribe push.unsubscribe
    """,
    Role.APPROVE: """
        approve set_mode shell files.offer files.answer terminals.offer terminals.answer grant.revoke
        session.agent_options session.agent_choose
    """,
    Role.ADMIN: """
        session.delete session.import ext.install ext.remove ext.enable ext.disable
        trust.list trust.grant trust.revoke token.create token.list token.revoke daemon.compact daemon.reload daemon.shutdown
        daemon.drain session.move
        channel.pair channel.unpair auth.check auth.login auth.logout auth.begin auth.wait auth.cancel model.check
        push.list push.remove audit.list
    """,
}
"""The specification's table of commands and roles (`docs/protocol.md`); `hello` and `ping` are open to all."""

STDIO = "hello prompt abort compact get_state get_messages clear set_model set_reasoning get_models ping session.undo session.redo"
"""Commands of `zot rpc` (`docs/protocol.md`)."""

FIELDS = {
    "hello": "client protocol role token can_approve",
    "prompt": "message images when_busy",
    "compact": "instructions",
    "set_model": "model",
    "set_reasoning": "reasoning",
    "attach": "session after limit",
    "session.list": "cwd state cursor limit",
    "session.history": "before limit",
    "session.search": "query",
    "usage.report": "since by",
    "session.create": "cwd name provider model reasoning base_url system_prompt append_system_prompt tools no_tools "
    "max_steps mode extensions no_ext ephemeral env secrets",
    "session.configure": "name provider model reasoning base_url system_prompt append_system_prompt tools no_tools "
    "max_steps mode extensions no_ext env secrets",
    "subscribe": "topics",
    "complete": "kind text",
    "prompt.history": "query cursor limit",
    "ext.logs": "follow",
    "ext.reload": "name",
    "ext.tap": "name",
    "run_command": "name args",
    "approve": "approval args_digest decision scope reason args",
    "daemon.shutdown": "when_idle",
}
"""Parameters in the specification."""

RESULTS = {
    "ping": "pong",
    "get_state": "provider model cwd message_count busy usage",
    "get_messages": "messages",
    "set_model": "model",
    "get_models": "models",
    "prompt": "started input run position",
    "compact": "started",
    "hello": "protocol_version version provider model epoch connection pid role features limits",
    "session.create": "session seq epoch",
    "attach": "mode reason session seq epoch usage queue approvals panels status notes run messages has_more",
    "daemon.status": "v state socket pid version protocol epoch uptime_s sessions clients extensions",
    "session.search": "hits cursor complete",
    "complete": "items found partial",
    "prompt.history": "prompts cursor",
    "workspace.info": "cwd branch detached",
    "usage.report": "rows",
}
"""`data` in the specification."""

CODES = """
    bad_request too_large unauthorized forbidden not_found conflict duplicate_key already_resolved stale_args busy
    queue_full overloaded budget_exceeded blocked unsupported storage_blocked interrupted cancelled timeout
    shutting_down internal
"""

WITHOUT_HANDLER: set[str] = set()
"""Commands that answer `unsupported`. Remove a line when its handler is written; add none."""

ANSWERS_BEFORE_IT_RETURNS = {
    "approve",
    "attach",
    "compact",
    "prompt",
    "run_command",
    "session.configure",
    "session.plan_edit",
    "session.redo",
    "session.rename",
    "session.rewind",
    "session.undo",
    "set_mode",
    "set_model",
    "shell",
}
"""Handlers that respond themselves, because events follow the response."""


def by_name(command):
    return command.name


def fields(kind):
    return {field.encode_name for field in msgspec.structs.fields(kind)}


# --- the table ------------------------------------------------------------------------------------------------


def test_names_are_unique():
    assert [name for name, count in Counter(map(by_name, COMMANDS)).items() if count > 1] == []
    assert BY_NAME.keys() == {command.name for command in COMMANDS}


@pytest.mark.parametrize("role", Role, ids=lambda role: role.name)
def test_roles_match_the_specification(role):
    assert {command.name for command in COMMANDS if command.role is role} == set(ROLES[role].split())


def test_a_role_includes_those_before_it():
    assert Role.READ < Role.SUBMIT < Role.APPROVE < Role.ADMIN


def test_stdio_has_the_commands_of_the_original():
    assert {command.name for command in COMMANDS if command.stdio} == set(STDIO.split())


@pytest.mark.parametrize("name", FIELDS)
def test_parameters_have_the_names_of_the_specification(name):
    assert set(FIELDS[name].split()) <= fields(BY_NAME[name].params)


@pytest.mark.parametrize("name", RESULTS)
def test_results_have_the_names_of_the_specification(name):
    result = BY_NAME[name].result
    assert result is not None
    assert set(RESULTS[name].split()) <= fields(result)


@pytest.mark.parametrize("command", COMMANDS, ids=by_name)
def test_no_parameter_hides_the_id_or_type_of_its_request(command):
    assert fields(command.params).isdisjoint({"id", "type"})


@pytest.mark.parametrize("command", COMMANDS, ids=by_name)
def test_every_command_has_a_one_line_summary(command):
    assert command.summary
    assert not command.summary.endswith(".")


@pytest.mark.parametrize("command", [c for c in COMMANDS if issubclass(c.params, Mutation)], ids=by_name)
def test_every_changing_command_has_a_request_id(command):
    assert fields(command.params) >= {"session", "request_id"}
    assert command.role > Role.READ


def test_error_codes_are_a_closed_set():
    assert [code.value for code in Code] == CODES.split()


def test_secrets_are_omitted_from_representations():
    create = decode(b'{"cwd":"/src","secrets":{"api_key":"sk-1"}}', api.SessionCreate)
    assert create.secrets == api.Secrets("sk-1")
    assert b"secrets" not in encode(api.SessionCreate(cwd="/src"))


# --- handlers -------------------------------------------------------------------------------------------------


def test_commands_without_a_handler_are_listed():
    assert HANDLERS.keys() <= BY_NAME.keys()
    assert BY_NAME.keys() - HANDLERS.keys() == WITHOUT_HANDLER


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_takes_the_parameters_of_its_row(name):
    assert iscoroutinefunction(HANDLERS[name])
    hints = get_type_hints(function(HANDLERS[name]))
    call, params = (hints[key] for key in signature(HANDLERS[name]).parameters)
    assert (call, params) == (Invocation, BY_NAME[name].params)


@pytest.mark.parametrize("name", HANDLERS)
def test_a_handler_returns_the_result_of_its_row(name):
    result = BY_NAME[name].result or type(None)
    returned = members(get_type_hints(function(HANDLERS[name]))["return"])
    allowed = {result, type(None)} if name in ANSWERS_BEFORE_IT_RETURNS else {result}
    assert returned <= allowed


def function(handler):
    """Return the function of a handler, which may be bound to what it needs of the daemon."""
    return handler.func if isinstance(handler, partial) else handler


def members(hint):
    """Return the types of a union, or the single type."""
    return set(get_args(hint)) if get_origin(hint) in {Union, type(int | str)} else {hint}


@pytest.mark.parametrize("command", COMMANDS, ids=by_name)
def test_parameters_and_results_are_frames(command):
    assert issubclass(command.params, Frozen)
    assert command.result is None or issubclass(command.result, Frozen)
