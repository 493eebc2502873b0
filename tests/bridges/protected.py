"""A real MCP server that wants a login, and the authorization server that it names, in a thread of their own."""

import asyncio
import contextlib
import re
import socket
import threading
import urllib.request

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

from zotd.testing.auth_server import AuthServer


class Protected:
    """Both servers while they run."""

    def __init__(self, auth):
        self.auth = auth
        self.url = ""
        self.ready = threading.Event()
        self._over = threading.Event()

    async def verify_token(self, token):
        """Tell the package whether a request is answered (its `TokenVerifier`)."""
        if not await asyncio.to_thread(self.auth.accepts, token):
            return None
        return AccessToken(token=token, client_id="registered", scopes=[], resource=self.url)

    def run(self):
        asyncio.run(self._serve())

    def stop(self):
        self._over.set()

    async def _serve(self):
        async with self.auth:
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
                wanted = {"issuer_url": self.auth.url, "resource_server_url": self.url, "validate_token_resource": True}
                server = MCPServer(
                    "protected", log_level="CRITICAL", token_verifier=self, auth=AuthSettings.model_validate(wanted)
                )
                server.add_tool(lambda: "hi", name="hi")
                config = uvicorn.Config(server.streamable_http_app(), log_level="critical", timeout_graceful_shutdown=1)
                serving = uvicorn.Server(config)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(serving.serve(sockets=[listener]))
                    self.ready.set()
                    await asyncio.to_thread(self._over.wait)
                    serving.should_exit = True


@contextlib.contextmanager
def protected(auth=None):
    """Both servers; `auth` is the authorization server, one that the test controls unless it is given."""
    servers = Protected(auth or AuthServer())
    thread = threading.Thread(target=servers.run)
    thread.start()
    assert servers.ready.wait(20)
    try:
        yield servers
    finally:
        servers.stop()
        thread.join()


def _open(url):
    with urllib.request.urlopen(url, timeout=20) as page:
        page.read()


def log_in(shell, *flags, name="srv", visit=_open):
    """Run `zotctl mcp login`, and `visit` in the browser the page that it names; return its code, output and errors."""
    said = []
    with shell.start("zotctl", "mcp", "login", name, "--no-browser", *flags) as process:
        for line in process.stderr:
            said.append(line)
            if found := re.fullmatch(r"log in on this page: (\S+)\n", line):
                visit(found[1])
        out = process.stdout.read()
    return process.returncode, out, "".join(said)


def write_entry(home, url):
    home.mkdir(parents=True, exist_ok=True)
    (home / "mcp.json").write_text(f'{{"mcpServers": {{"srv": {{"url": "{url}"}}}}}}')
