"""A repository behind git's own HTTPS: `git http-backend`, with a certificate and basic authentication."""

import base64
import ssl
import threading
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer

import trustme

from tests.checkpoints.conftest import git
from tests.exthost.install.conftest import GitOverHttp

USER, PASSWORD = "ann", "right-0123"


class GitHost:
    """`shared.git` at `url`, and what a user needs to reach it."""

    def __init__(self, folder, port):
        self.url = f"https://127.0.0.1:{port}/shared.git"
        self.port = port
        self.repository = folder / "shared.git"
        self.authority = folder / "ca.pem"

    def introduce(self, home, password=None, **settings):
        """Have the user of this home trust the host, and store a login if there is a password."""
        home.mkdir(exist_ok=True)
        given = {"http.sslCAInfo": self.authority, "credential.helper": "store", **settings}
        for name, value in given.items():
            git(home, "config", "--file", str(home / ".gitconfig"), name.replace("_", "."), str(value))
        login = home / ".git-credentials"
        login.write_text(f"https://{USER}:{password}@127.0.0.1:{self.port}\n" if password else "")
        login.chmod(0o600)


@contextmanager
def serving(folder):
    """A host until the end of the block."""
    folder.mkdir()
    expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(GitOverHttp):
        root = folder
        asked = threading.Event()

        def serve(self):
            if self.headers.get("Authorization") == expected:
                super().serve()
                return
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()

        def finish(self):
            super().finish()
            with suppress(OSError):  # the client has gone first
                self.connection.unwrap()  # else it takes the answer for cut

    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        host = GitHost(folder, server.server_port)
        authority.cert_pem.write_to_path(host.authority)
        git(folder, "init", "-q", "--bare", str(host.repository))
        git(host.repository, "config", "http.receivepack", "true")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()
