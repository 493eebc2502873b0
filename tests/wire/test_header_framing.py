import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.wire.framing import TooLong
from zotd.wire.header_framing import BadHeaderError, HeaderFrames, framed

LIMIT = 32

MESSAGES = st.lists(st.binary(min_size=1, max_size=2 * LIMIT), max_size=6)


def fed(stream, cuts=()):
    frames, found, last = HeaderFrames(LIMIT), [], 0
    for cut in [*sorted(min(cut, len(stream)) for cut in cuts), len(stream)]:
        found += frames.feed(stream[last:cut])
        last = cut
    return [None if isinstance(one, TooLong) else one for one in found]


@given(MESSAGES, st.lists(st.integers(0, 1000)))
def test_the_messages_do_not_depend_on_how_the_bytes_are_divided(messages, cuts):
    stream = b"".join(map(framed, messages))
    assert fed(stream, cuts) == [one if len(one) <= LIMIT else None for one in messages]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length:2 \r\nContent-Type: x\r\n\r\n",
    ],
)
def test_other_fields_and_cases_of_a_header_are_accepted(header):
    assert fed(header + b"{}") == [b"{}"]


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: many\r\n\r\n",
        b"Content-Type: x\r\n\r\n{}",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"debug: a line that was printed by mistake\n" * 200,
    ],
)
def test_something_that_is_no_header_ends_the_stream(stream):
    with pytest.raises(BadHeaderError):
        fed(stream)


def test_a_message_that_is_too_long_is_not_kept():
    frames = HeaderFrames(LIMIT)
    assert [type(one) for one in frames.feed(b"Content-Length: 1000000\r\n\r\n")] == [TooLong]
    for _ in range(1000):
        assert frames.feed(bytes(1000)) == []
    assert frames.feed(framed(b"{}")) == [b"{}"]
