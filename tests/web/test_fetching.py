"""Fetching and converting pages of a server that sends what it likes."""

import asyncio
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from tests.web.hostile_pages import ANSWERS, MALFORMED, NAMES, REFUSED
from zotd.proxy import AllowList, parse_rule
from zotd.proxy.connection import ClientRights
from zotd.proxy.ruled_access import RuledAccess
from zotd.web import fetching
from zotd.web.conversion import page_text
from zotd.web.errors import WebError
from zotd.web.fetching import fetch_page, page_url


@asynccontextmanager
async def sending(data, *, hangs=False):
    """A server that reads a request and sends `data`; its port, and the heads of the requests."""
    heads: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader, writer):
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(data)
            await writer.drain()
            if hangs:
                await ended.wait()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heads
    finally:
        ended.set()
        server.close()
        await server.wait_closed()


async def resolve(name):
    if name not in NAMES:
        raise OSError(None, "Name or service not known")
    return [ip_address(address) for address in NAMES[name]]


@pytest.fixture
def records():
    return []


@pytest.fixture
def access(records):
    """The network of a call, with these rules."""

    def access(*rules):
        return RuledAccess(ClientRights("tests", AllowList(map(parse_rule, rules)), resolve, records.append))

    return access


async def read(url, access, cwd):
    page = await fetch_page(page_url(url), access)
    return await page_text(page, cwd=str(cwd), ledger="")


@pytest.mark.parametrize("name", REFUSED)
async def test_no_spelling_leads_to_an_address_that_is_not_on_the_internet(name, access, tmp_path):
    url, told = REFUSED[name]
    with pytest.raises(WebError) as refused:
        await read(url, access("*:*"), tmp_path)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_url_of_a_page_is_refused_in_a_sentence(name):
    url, told = MALFORMED[name]
    with pytest.raises(WebError) as refused:
        page_url(url)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_is_shown_or_refused_whatever_it_is(name, access, tmp_path, monkeypatch):
    answer = ANSWERS[name]
    if answer.hangs:
        monkeypatch.setattr(fetching, "SILENCE_S", 0.2)
    async with sending(answer.sends, hangs=answer.hangs) as (port, _):
        network = access(f"page.example:{port}", f"127.0.0.1:{port}")
        try:
            text, failed = await read(f"http://page.example:{port}/", network, tmp_path), False
        except WebError as error:
            text, failed = str(error), True
    assert (failed, answer.told in text) == (answer.fails, True), text[:500]
    assert not [word for word in answer.not_told if word in text]


async def test_a_request_has_no_cookie_no_referrer_and_asks_for_no_compression(access, tmp_path):
    async with sending(b"HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n") as (
        port,
        heads,
    ):
        with pytest.raises(WebError):
            await read(f"http://page.example:{port}/one", access(f"page.example:{port}", f"127.0.0.1:{port}"), tmp_path)
    sent = b"".join(heads).lower()
    assert b"cookie" not in sent
    assert b"referer" not in sent
    assert b"accept-encoding: identity" in sent


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(access, records, tmp_path):
    """The name is not looked up again, when it could lead elsewhere."""
    async with sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi") as (port, heads):
        network = access(f"page.example:{port}", f"127.0.0.1:{port}")
        assert await read(f"http://page.example:{port}/", network, tmp_path) == "hi"
    assert heads[-1].startswith(b"GET / HTTP/1.1\r\nHost: page.example")
    assert [(one.host, one.address, one.received, one.outcome) for one in records] == [
        ("page.example", "127.0.0.1", 2, "allowed")
    ]


async def test_a_page_that_takes_too_long_is_given_up(access, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "PAGE_S", 0.2)
    async with sending(b"HTTP/1.1 200 OK\r\n", hangs=True) as (port, _):
        with pytest.raises(WebError, match=r"was not fetched within 0\.2 s"):
            await read(f"http://page.example:{port}/", access(f"page.example:{port}", f"127.0.0.1:{port}"), tmp_path)


def test_https_is_meant_where_no_scheme_is_written():
    assert page_url("example.org/a#b") == "https://example.org/a"
