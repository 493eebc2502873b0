"""Servers that are reached over HTTP."""

import json
import re
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.bridges.conftest import LOST
from zotd.testing import warm
from zotd.testing.ext_driver import text_of


class Server(ThreadingHTTPServer):
    """MCP over HTTP by hand: each request is answered with one JSON body."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self.answers = {}
        """Other answers, by method: status and body."""
        self.seen = []
        """The headers of all requests."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(self.headers)
        method = message["method"]
        if method in self.server.answers:
            status, body = self.server.answers[method]
            return self._answer(status, body)
        if "id" not in message:
            return self._answer(202, None)
        result = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "by hand", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "hi", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "hi"}]},
        }[method]
        return self._answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def do_GET(self):
        self._answer(404, None)  # a server need not know these two methods

    do_DELETE = do_GET  # noqa: N815  (the name in the standard library)

    def _answer(self, status, body):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:1{self.path}")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Mcp-Session-Id", "s1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):  # noqa: A002  (the name in the standard library)
        pass


@pytest.fixture
def by_hand():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def real(*transport):
    """The sample server over HTTP: its process, and its origin."""
    with subprocess.Popen(
        warm.command("tests.bridges.sample_server", "0", *transport),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            url = next(found[1] for line in process.stderr if (found := re.search(r"running on (http://\S+)", line)))
            drain = threading.Thread(target=process.stderr.read)
            drain.start()
            yield process, url
            process.kill()
            drain.join()
        finally:
            process.kill()


@pytest.mark.parametrize(("transport", "path"), [([], "/mcp"), (["sse"], "/sse")])
def test_a_real_server_offers_its_tools_tells_progress_and_is_cancelled(start, transport, path):
    with real(*transport) as (_, url):
        driver = start({"url": url + path, **({"type": "sse"} if transport else {})})
        call = driver.request("tool_call", name="srv__steps", args={})
        assert driver.expect("tool_progress", id=call)["text"] == "1/2 halfway"
        assert text_of(driver.expect("tool_result", id=call)) == "done"
        call = driver.request("tool_call", name="srv__endless", args={})
        driver.expect("tool_progress", id=call)
        driver.send("tool_cancel", id=call)
        assert text_of(driver.call_tool("srv__was_cancelled")) == "yes"
        driver.call_tool("srv__replace")
        assert driver.expect("register_tool")["name"] == "srv__later"
        assert driver.shut_down() == 0


def test_a_server_that_dies_in_a_call_fails_it_and_ends_the_bridge(start):
    with real() as (process, url):
        driver = start({"url": f"{url}/mcp"})
        call = driver.request("tool_call", name="srv__endless", args={})
        driver.expect("tool_progress", id=call)
        process.kill()
        assert text_of(driver.expect("tool_result", id=call)) == LOST
        assert driver.end() == 1
        assert driver.log().splitlines()[-1] == "the MCP server srv closed the connection"


def test_an_old_server_that_dies_ends_the_bridge_also_between_calls(start):
    with real("sse") as (process, url):
        driver = start({"url": f"{url}/sse", "type": "sse"})
        process.kill()
        assert driver.end() == 1
        assert driver.log().splitlines()[-1] == "the MCP server srv closed the connection"


def test_an_old_server_that_refuses_a_message_ends_the_bridge(lost):
    with real("sse") as (_, url):
        code, reason = lost({"url": f"{url}/sse", "type": "sse", "headers": {"Host": "elsewhere"}})
        assert (code, reason) == (1, "the MCP server srv refused the request (HTTP 421)")


def test_a_server_that_is_gone_fails_the_next_call_and_ends_the_bridge(start, by_hand):
    driver = start({"url": by_hand.url})
    by_hand.shutdown()
    by_hand.server_close()
    assert text_of(driver.call_tool("srv__hi")) == LOST
    assert driver.end() == 1
    assert driver.log().splitlines()[-1].startswith("the MCP server srv cannot be reached: ")


def test_headers_go_to_the_server_with_their_variables(start, by_hand):
    driver = start({"url": by_hand.url, "headers": {"Authorization": "Bearer ${TOKEN}"}}, TOKEN="t0p-secret")
    assert text_of(driver.call_tool("srv__hi")) == "hi"
    assert {headers["Authorization"] for headers in by_hand.seen} == {"Bearer t0p-secret"}


@pytest.mark.parametrize(
    ("status", "body"), [(404, None), (400, {"jsonrpc": "2.0", "error": {"code": -32000, "message": "No session"}})]
)
def test_a_session_that_is_over_ends_the_bridge_so_that_a_new_one_begins(start, by_hand, status, body):
    driver = start({"url": by_hand.url})
    by_hand.answers["tools/call"] = status, body
    assert driver.call_tool("srv__hi")["is_error"]
    assert driver.end() == 1
    assert driver.log().splitlines()[-1] == "the MCP server srv has ended the session; it was probably restarted"


def test_an_error_about_one_call_ends_nothing(start, by_hand):
    driver = start({"url": by_hand.url})
    by_hand.answers["tools/call"] = 400, {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "no such"}}
    assert text_of(driver.call_tool("srv__hi")) == "no such"
    by_hand.answers["tools/call"] = 503, None
    assert driver.call_tool("srv__hi")["is_error"]
    assert "the server answers HTTP 503" in driver.log()
    del by_hand.answers["tools/call"]
    assert text_of(driver.call_tool("srv__hi")) == "hi"


def test_a_missing_token_is_reported(lost, by_hand):
    by_hand.answers["initialize"] = 401, None
    assert lost({"url": by_hand.url}) == (1, "the MCP server srv needs a login (HTTP 401); run: zotctl mcp login srv")
    assert lost({"url": by_hand.url, "headers": {"authorization": "Bearer x"}}) == (
        1,
        "the MCP server srv refused the request as unauthorized (HTTP 401); its `headers` need a valid token",
    )


def test_no_secret_is_in_the_log(launch, by_hand):
    by_hand.answers["initialize"] = 302, None  # to an address that repeats the key, which is then quoted
    driver = launch({"url": by_hand.url + "/${TOKEN}"}, TOKEN="t0p-secret")
    driver.rest()
    assert driver.end() == 1
    assert "/mcp/[hidden]" in driver.log()
    assert "t0p-secret" not in driver.log()
