"""A user with secrets, caches and a working directory, in a place that is not the temporary directory."""

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import msgspec
import pytest

import zotd
from tests.needs import needs
from zotd import paths
from zotd.jail import MECHANISMS, Jail, Mechanism, Network, NetworkOutlet
from zotd.jail.computing import policy_for
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.process import spawn
from zotd.proxy.namespaces import AHEAD, NamespaceStock
from zotd.proxy.server import Outlet, running_proxy

KEY = "a key that no command may read"

NOBODY = 65534
"""The id of a user without privileges."""

WAYS = ("ahead", "handover")
"""Commands get a network namespace that was made ahead of need, or make their own and hand over a listener."""


@dataclass
class Person:
    root: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables that commands get as well."""
    way: str = "ahead"
    """How commands get the network through a proxy, one of `WAYS`."""

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

    def policy(self, cwd=None, *, network=Network.OFF, shown=(), granted=(), **env):
        return policy_for(self._site(cwd, network, shown, granted, env))

    def jail(self, mechanism, cwd=None, *, network=Network.OFF, shown=(), granted=()):
        if mechanism is Mechanism.BUBBLEWRAP:
            needs("bwrap")
        return find_jail(self._site(cwd, network, shown, granted), [mechanism])

    def _site(self, cwd, network, shown, granted, env=MappingProxyType({})):
        texts = (tuple(map(str, paths)) for paths in (shown, granted))
        return JailSite(str(cwd or self.work), {**self.env, **env}, network, *texts)

    async def run(self, jail, command, outlet=None):
        """The output and the exit code of a shell command in the jail, which reaches hosts through the outlet."""
        said = bytearray()
        argv = ["/bin/bash", "-c", command]
        env = {**self.env, **self.extra}
        confiner = jail if outlet is None else Connected(jail, outlet)
        async with spawn(argv, cwd=str(self.work), env=env, on_output=said.extend, jail=confiner) as child:
            code = await child.wait()
        return said.decode(), code

    async def started(self, jail, command, outlet=None):
        """A command that has printed its first line, and what it prints."""
        said, ready = bytearray(), asyncio.Event()

        def on_output(data):
            said.extend(data)
            ready.set()

        argv = ["/bin/bash", "-c", command]
        confiner = jail if outlet is None else Connected(jail, outlet)
        env = {**self.env, **self.extra}
        child = spawn(argv, cwd=str(self.work), env=env, on_output=on_output, jail=confiner)
        async with asyncio.timeout(60):
            await ready.wait()
        return child, said

    @asynccontextmanager
    async def proxy(self, record=lambda _: None):
        """A proxy whose commands reach it in this person's way."""
        is_ahead = self.way == "ahead"
        async with running_proxy(
            paths.outlet_dir(self.env), record, namespaces=NamespaceStock(AHEAD if is_ahead else 0)
        ) as proxy:
            if is_ahead:
                needs("nsenter")
                assert await proxy.prepare() == AHEAD
            yield proxy

    def by_way(self, outlet):
        """The same outlet, of which a command uses this person's way or none."""
        return Ahead(outlet) if self.way == "ahead" else outlet


@dataclass
class Ahead:
    """An outlet that has nothing but namespaces that were made ahead."""

    outlet: Outlet

    def entrance(self):
        found = self.outlet.entrance()
        assert found is not None
        return found


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


@pytest.fixture(params=MECHANISMS)
def jail(request, person):
    jail = person.jail(request.param)
    yield jail
    jail.close()


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@cache
def first_repository():
    """The `.git` that the others are copies of: a copy takes a tenth of the time of git's two processes."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    git(folder.name, "init", "-q", "-b", "main")
    git(folder.name, "commit", "-q", "--allow-empty", "-m", "first")
    return Path(folder.name, ".git")


def repository(folder):
    folder.mkdir(exist_ok=True)
    shutil.copytree(first_repository(), folder / ".git")
    return folder


def as_nobody(person, script, *words):
    """Run a Python program as a user without privileges, who owns the person's files; their root is its first argument."""
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("this user cannot become another one")
    with TemporaryDirectory(dir="/var/tmp") as folder:  # the sources may be in a home that others cannot enter
        for package in (zotd, msgspec):
            shutil.copytree(package.__path__[0], Path(folder, package.__name__))
        for path in (Path(folder), person.root):
            path.chmod(0o755)
            for below in path.rglob("*"):
                os.chown(below, NOBODY, NOBODY)
        python = os.path.realpath(sys.executable)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
        env = {"PYTHONPATH": folder, "PATH": os.environ["PATH"]}
        command = [*user, python, "-c", script, str(person.root), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


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
