"""The typed blocking client."""

import subprocess
import sys

import pytest

from zotd.client.errors import BusyError, CallError
from zotd.client.typed import BlockingClient
from zotd.wire import api, events


@pytest.fixture
def client(daemon, path):
    with BlockingClient.connect(path=path, autostart=False) as found:
        yield found


def text_of(stream):
    return "".join(event.delta for event in stream if isinstance(event, events.TextDelta))


def test_a_prompt_yields_the_events_of_its_run_up_to_done(client):
    session = client.create()
    seen = list(session.prompt("hello"))
    assert isinstance(seen[0], events.UserMessage)
    assert isinstance(seen[-1], events.Done)
    assert text_of(session.prompt("again")) == "again"


def test_a_flood_of_events_is_received_completely(client):
    assert len(text_of(client.create().prompt("many 20000"))) == 20_000


def test_commands_can_be_sent_while_a_prompt_is_read(client):
    session = client.create()
    stream = session.prompt("hang")
    next(stream)
    with pytest.raises(BusyError):
        next(session.prompt("second"))
    session.abort()
    assert [event.stop for event in stream if isinstance(event, events.TurnEnd)] == ["aborted"]


def test_two_readers_of_one_session_see_the_same_events(client):
    session = client.create()
    everything = session.events()
    stream = session.prompt("hello")
    first = next(stream)
    with client.feed(session.id) as one, client.feed(session.id) as two:
        list(client.session(session.id).prompt("again"))
        events_of_one = one.take()
        assert events_of_one
        assert events_of_one == two.take()
    assert isinstance(first, events.UserMessage)
    everything.close()


def test_the_typed_commands_of_a_session(client):
    session = client.create()
    assert session.compact() == "all of it"
    assert session.set_model("fake-2") == api.ModelName("fake-2")
    assert session.state().model == "fake-1"
    assert session.usage().input == 1
    assert session.models()[0].id == "fake-1"
    assert session.messages() == []
    session.close()
    with pytest.raises(CallError):
        session.messages()


def test_the_typed_blocking_client_does_not_import_asyncio():
    script = "import sys, zotd.client.typed; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
