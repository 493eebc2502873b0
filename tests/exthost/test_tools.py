"""Calls of an extension's tools that must not be sent."""

import pytest
from msgspec.structs import replace

from tests.exthost.conftest import context
from zotd.core.ports import StorageError

COUNTING = """
hello()
for name, replay in (("once", "never"), ("often", "safe")):
    say({"type": "register_tool", "name": name, "description": "", "schema": {}, "replay": replay})
say({"type": "ready"})
serve()
"""


def lost():
    raise StorageError("this daemon has lost its lease")


async def test_no_call_is_sent_that_another_process_may_make_by_now_unless_it_can_be_repeated(workshop):
    workshop.script("w", COUNTING)
    async with workshop.host() as host:
        tools = {tool.spec.name: tool for tool in host.offers.tools()}
        stopped = replace(context(), check_lease=lost)
        with pytest.raises(ExceptionGroup) as raised:
            await tools["once"].run({}, stopped)
        assert raised.group_contains(StorageError, match="has lost its lease")
        assert not (await tools["often"].run({}, stopped)).is_error
        assert not (await tools["once"].run({}, context())).is_error
