"""A home to install into, and real repositories behind git's own transports on loopback."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from zotd.exthost.discovery import discover
from zotd.exthost.install import install


def manifest(name="notes", **fields):
    return json.dumps({"name": name, "exec": "./main.sh", **fields})


class Repo:
    """A repository on this machine, made with plumbing: git's porcelain refuses most of what is made here."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "--quiet", "--bare", "--initial-branch=main", path)
        self.git("config", "http.receivepack", "false")

    def git(self, *args: str | Path, data: bytes = b"") -> str:
        env = {"PATH": os.environ["PATH"], "GIT_DIR": str(self.path), "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nowhere"}
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": "A", f"GIT_{who}_EMAIL": "a@b", f"GIT_{who}_DATE": "1700000000 +0000"}
        done = subprocess.run(["git", *args], input=data, capture_output=True, check=True, env=env)
        return done.stdout.decode().strip()

    def blob(self, content: str) -> str:
        return self.git("hash-object", "-w", "--stdin", data=content.encode())

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """(mode, name, object id); in this order, whatever the names are."""
        raw = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=raw)

    def commit(self, *entries: tuple[str, str, str], name: str = "notes", branch: str = "main") -> str:
        """A commit with a manifest and `entries`, which become the branch."""
        first = [("100644", "extension.json", self.blob(manifest(name)))]
        tree = self.tree(*sorted([*first, *entries], key=lambda entry: entry[1].casefold()))
        commit = self.git("commit-tree", tree, "-m", "x")
        self.git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def file(self, name: str, content: str = "", mode: str = "100644") -> tuple[str, str, str]:
        return (mode, name, self.blob(content))

    def link(self, name: str, target: str) -> tuple[str, str, str]:
        return self.file(name, target, mode="120000")


class GitOverHttp(BaseHTTPRequestHandler):
    """`git http-backend` (gitprotocol-http)."""

    root: Path
    asked: threading.Event
    """Set by the first request."""
    silent = False
    status = 0
    """What every request is answered with instead, when not 0."""

    def do_GET(self):
        self.asked.set()
        if self.silent:
            self.rfile.read(1)  # until the client goes away
        elif self.status:
            self.send_response(self.status)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
        else:
            self.serve()

    def do_POST(self):
        self.do_GET()

    def serve(self):
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, check=True, env=env)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Place:
    """A home, somebody's directory to install from, and a server of repositories."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "home"
        self.cwd = path / "work"
        self.remote = path / "remote"
        for directory in (self.home, self.cwd, self.remote):
            directory.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(path / "user")}
        self.words: list[str] = []

        class Handler(GitOverHttp):
            root = self.remote
            asked = threading.Event()

        self.handler = Handler
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def directory(self, name: str = "notes", **files: str) -> Path:
        directory = self.cwd / name
        directory.mkdir()
        (directory / "extension.json").write_text(manifest(name))
        for file, content in files.items():
            (directory / file).write_text(content)
        return directory

    def repo(self, name: str = "notes") -> Repo:
        return Repo(self.remote / name)

    async def install(self, what, **options):
        return await install(
            str(what), home=self.home, cwd=self.cwd, env=self.env, progress=self.words.append, **options
        )

    @property
    def extensions(self) -> Path:
        return self.home / "extensions"

    def holds_only(self, *names: str) -> bool:
        """Whether nothing else is in `extensions`, at any depth; the empty place for staging aside."""
        return self.there() == sorted([".installing", *names])

    def there(self) -> list[str]:
        """Everything in `extensions`, staging and what was put away included."""
        return sorted(str(path.relative_to(self.extensions)) for path in self.extensions.rglob("*"))

    def started(self) -> list[str]:
        found = discover(explicit=(), cwd=self.cwd, home=self.home, is_trusted=lambda _: True)
        return [one.name for one in found.manifests]


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    thread = threading.Thread(target=place.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield place
    place.server.shutdown()
    thread.join()
    place.server.server_close()
