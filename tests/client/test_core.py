"""The part that both clients share, fed with bytes: no socket, no loop."""

from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.client.core import ClientCore, Feed
from zotd.client.errors import CallError, ConnectionLostError
from zotd.client.frames import ResponseFrame, unpack
from zotd.wire import api

PONG = b'{"type":"response","id":%d,"success":true,"data":{"pong":true}}\n'
DELTA = b'{"type":"text_delta","session":"s_1","seq":%d,"delta":"a"}\n'
UNREAD = b'{"type":"response","id":null,"success":false,"code":"bad_frame","error":"the line is not JSON"}\n'


def test_a_response_settles_the_call_with_its_id_in_any_order():
    core = ClientCore()
    one, two = Future[ResponseFrame](), Future[ResponseFrame]()
    with core.call("ping", api.Nothing(), one) as first, core.call("ping", api.Nothing(), two) as second:
        assert (first, second) == (b'{"type":"ping","id":1}', b'{"type":"ping","id":2}')
        core.receive(PONG % 2)
        assert (one.done(), two.done()) == (False, True)
        core.receive(PONG % 1)
    assert unpack(one.result(), "ping") == unpack(two.result(), "ping")


def test_a_response_that_comes_after_its_call_is_dropped():
    core = ClientCore()
    answer = Future[ResponseFrame]()
    with core.call("ping", api.Nothing(), answer):
        pass
    core.receive(PONG % 1)
    assert not answer.done()
    assert core.lost is None


@given(st.integers(1, 20), st.lists(st.integers(1, 60), max_size=40))
def test_a_feed_gets_each_event_once_wherever_the_bytes_are_cut(count, cuts):
    core, feed = ClientCore(), Feed()
    data = b"".join(DELTA % number for number in range(1, count + 1))
    with core.registered("s_1", feed):
        for size in cuts:
            core.receive(data[:size])
            data = data[size:]
        core.receive(data)
    assert [event.seq for event in feed.take()] == list(range(1, count + 1))


def test_a_line_that_the_daemon_could_not_parse_fails_the_only_call():
    core, answer = ClientCore(), Future[ResponseFrame]()
    with core.call("ping", api.Nothing(), answer):
        core.receive(UNREAD)
    with pytest.raises(CallError, match="not JSON"):
        unpack(answer.result(), "ping")


def test_a_line_that_the_daemon_could_not_parse_ends_the_connection_if_several_calls_wait():
    core, one, two = ClientCore(), Future[ResponseFrame](), Future[ResponseFrame]()
    with core.call("ping", api.Nothing(), one), core.call("ping", api.Nothing(), two):
        core.receive(UNREAD)
    assert isinstance(one.exception(), ConnectionLostError)
    assert one.exception() is two.exception() is core.lost


def test_a_reader_gets_what_came_before_the_end_and_then_the_reason_of_the_daemon():
    core, feed = ClientCore(), Feed()
    with core.registered("s_1", feed):
        core.receive(DELTA % 1)
        core.receive(b'{"type":"evicted","reason":"it does not read","last_seq":1}\n')
        core.end(ConnectionLostError("zotd closed the connection"))
    assert [event.seq for event in feed.take()] == [1, None]
    with pytest.raises(ConnectionLostError, match="cut the connection: it does not read"):
        feed.take()


def test_no_call_is_made_on_a_connection_that_sent_something_else_than_frames():
    core = ClientCore()
    core.receive(b"HTTP/1.1 400 Bad Request\n")
    with pytest.raises(ConnectionLostError, match="is it zotd"), core.call("ping", api.Nothing(), Future()):
        pass
