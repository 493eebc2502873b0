"""A user with secrets, caches and a working directory, in a place that is not the temporary directory."""

import os
import subprocess
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.needs import needs
from zotd.jail import Jail, Mechanism, Network, NetworkOutlet
from zotd.jail.computing import policy_for
from zotd.jail.mechanisms import find_jail
from zotd.process import spawn

KEY = "a key that no command may read"


@dataclass
class Person:
    root: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables that commands get as well."""

    @property
    def home(self):
        return self.root / "home"

    @property
    def work(self):
        return self.home / "work"

    @property
    def env(self):
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_RUNTIME_DIR": str(self.root / "runtime"),
            "ZOT_HOME": str(self.home / ".zot"),
            "PATH": os.environ["PATH"],
        }

    def policy(self, cwd=None, *, network=Network.OFF, shown=(), **env):
        return policy_for(str(cwd or self.work), {**self.env, **env}, network=network, shown=list(map(str, shown)))

    def jail(self, mechanism, cwd=None, *, network=Network.OFF, shown=()):
        if mechanism is Mechanism.BUBBLEWRAP:
            needs("bwrap")
        shown = list(map(str, shown))
        return find_jail(str(cwd or self.work), self.env, network=network, shown=shown, among=[mechanism])

    async def run(self, jail, command, outlet=None):
        """The output and the exit code of a shell command in the jail, which reaches hosts through the outlet."""
        said = bytearray()
        argv = ["/bin/bash", "-c", command]
        env = {**self.env, **self.extra}
        confiner = jail if outlet is None else Connected(jail, outlet)
        async with spawn(argv, cwd=str(self.work), env=env, on_output=said.extend, jail=confiner) as child:
            code = await child.wait()
        return said.decode(), code


@dataclass
class Connected:
    """A jail whose commands reach hosts through an outlet."""

    jail: Jail
    outlet: NetworkOutlet

    def start(self, argv, start):
        return self.jail.start(argv, start, self.outlet)


@pytest.fixture
def person():
    # Landlock cannot hide what is in the temporary directory, which commands may change.
    with TemporaryDirectory(dir="/var/tmp") as folder:
        person = Person(Path(folder).resolve())
        for path in ("home/work", "home/.ssh", "home/.cache", "home/.zot", "home/.config/gcloud", "tmp", "runtime"):
            (person.root / path).mkdir(parents=True)
        (person.home / ".ssh" / "id").write_text(KEY)
        (person.home / ".zot" / "auth.json").write_text(KEY)
        (person.home / ".netrc").write_text(KEY)
        (person.home / ".config" / "gcloud" / "credentials.db").write_text(KEY)
        (person.home / ".bashrc").write_text("before")
        (person.home / "notes").write_text("readable")
        yield person


@pytest.fixture(params=list(Mechanism))
def jail(request, person):
    jail = person.jail(request.param)
    yield jail
    jail.close()


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def repository(folder):
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@contextmanager
def files(folder):
    """The port of a server at 127.0.0.3 that has these files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.3", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
