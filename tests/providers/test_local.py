"""The local model's server as a child. That the model itself does its work, the demo shows."""

import os
import signal

import pytest

from tests.providers.conftest import asking, assembled, user
from zotd.core.retry import Failure, ModelError
from zotd.providers.catalog import SMOL
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.providers.few_shot import shortened
from zotd.providers.local import LocalModels
from zotd.tools.read import TOOL

MODEL_S = 240
"""A call takes 3 s when nothing else runs; the engine becomes ten times slower when it has to share the processor."""


@pytest.fixture
async def local():
    server = LocalModels(SMOL, os.environ)
    yield server
    await server.close()


@pytest.mark.timeout(MODEL_S)
async def test_one_server_serves_all_and_another_takes_the_place_of_a_dead_one(local):
    first = await local.server(SMOL)
    assert await local.server(SMOL) is first
    os.kill(first.child.pid, signal.SIGKILL)
    await first.child.wait()
    second = await local.server(SMOL)
    assert second is not first
    assert second.running


@pytest.mark.timeout(MODEL_S)
async def test_the_server_ends_with_its_stdin(local):
    server = await local.server(SMOL)
    os.close(server._stdin)
    server._stdin = -1
    assert await server.child.wait() == 0


async def test_a_file_that_is_not_there_or_no_model_is_named(local, tmp_path):
    with pytest.raises(ModelError, match=r"no model file /nowhere.gguf") as raised:
        await local.server("/nowhere.gguf")
    assert raised.value.failure is Failure.UNAVAILABLE
    bad = tmp_path / "bad.gguf"
    bad.write_text("not a model")
    with pytest.raises(ModelError, match="did not start") as raised:
        await local.server(str(bad))
    assert raised.value.failure is Failure.UNAVAILABLE


@pytest.mark.timeout(MODEL_S)
async def test_the_packaged_model_calls_a_tool(providers: Providers):
    model = providers.connect(ModelChoice("local", SMOL))
    reply = await assembled(model, asking(user("Read the file secret.txt"), tools=[TOOL.spec]))
    assert [(call.name, call.args) for call in reply.message()] == [("read", {"path": "secret.txt"})]


def test_a_small_model_gets_examples_and_little_else():
    request = shortened(asking(user("hi"), system="long " * 1000, tools=[TOOL.spec], max_output=5000))
    assert len(request.system) < 100
    assert request.tools[0].schema["properties"] == {"path": {"type": "string"}}
    assert request.messages[-1] == user("hi")
    assert request.messages[0] is shortened(asking(tools=[TOOL.spec])).messages[0]
    assert request.max_output
    assert request.max_output < 200
    assert shortened(asking(user("hi"), tools=[])).messages == [user("hi")]
