"""Which commands the audit trail records."""

from zotd.api.audited import AUDITED
from zotd.wire.api import BY_NAME, Role

WORK = """
    session.create session.rename session.fork session.rewind session.undo session.redo session.plan_edit session.job_move
    session.job_stop session.export session.close session.mcp_servers session.side_question
    prompt abort retry compact clear queue.withdraw queue.move set_model set_reasoning
    timer.add timer.edit timer.pause timer.resume timer.remove timer.run
    push.subscribe push.unsubscribe panel.key panel.resize panel.close ext.reload ext.tap
    files.offer files.answer terminals.offer terminals.answer session.agent_options
"""
"""Ordinary use of a session, which is in its records, and answers of editors."""

LOOKS = """
    auth.check auth.wait auth.cancel model.check trust.list push.list token.list audit.list daemon.compact
"""
"""Commands of administrators that decide nothing."""


def test_each_command_is_recorded_or_listed_as_one_that_is_not():
    reads = {name for name, command in BY_NAME.items() if command.role is Role.READ}
    others = {*WORK.split(), *LOOKS.split(), *reads}
    assert set(AUDITED).isdisjoint(others)
    assert set(BY_NAME) == set(AUDITED) | others


def test_the_recorded_parameters_exist_and_are_no_secrets_or_texts():
    for name, fields in AUDITED.items():
        assert set(fields) <= set(BY_NAME[name].params.__struct_fields__), name
        assert set(fields).isdisjoint({"api_key", "args", "code", "command", "env", "reason", "text"}), name
