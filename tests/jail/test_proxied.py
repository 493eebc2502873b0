"""Commands that reach hosts through a proxy, and nothing else."""

import asyncio
import io
import json
import os
import shutil
import socket
import sys
import tarfile
import zipfile
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.jail.conftest import WAYS, files, git, repository
from tests.needs import needs
from zotd.jail import JailError, Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite
from zotd.proxy import AllowList, parse_rule
from zotd.proxy.traffic_log import TrafficRecord


@pytest.fixture(params=WAYS)
def person(person, request):
    """A person whose commands reach the proxy in one of two ways, which nothing but their cost tells apart."""
    person.way = request.param
    return person


async def resolve(name):
    if name not in {"server.example", "evil.example"}:
        raise OSError(None, "Name or service not known")
    return [ip_address("127.0.0.3")]


@asynccontextmanager
async def outlet(person, *rules):
    """An outlet that allows these hosts, and the records of the proxy."""
    records: list[TrafficRecord] = []
    async with person.proxy(records.append) as proxy:
        yield person.by_way(proxy.outlet("tests", AllowList(map(parse_rule, rules)), resolve)), records


@asynccontextmanager
async def proxied(person, folder=None):
    """Run commands in a jail that may reach a server of this machine, which has the files of a folder."""
    with files(folder or person.home) as port:
        async with outlet(person, f"server.example:{port}", f"127.0.0.3:{port}") as (way, records):
            jail = person.jail(Mechanism.BUBBLEWRAP, network=Network.PROXIED)
            yield partial(person.run, jail, outlet=way), port, records


async def test_a_command_reaches_an_allowed_host_by_its_name(person):
    needs("curl")
    async with proxied(person) as (run, port, records):
        assert await run(f"curl -sS http://server.example:{port}/notes") == ("readable", 0)
    (record,) = records
    assert (record.who, record.host, record.port, record.outcome) == ("tests", "server.example", port, "allowed")


async def test_a_host_that_is_not_allowed_is_refused_with_the_reason(person):
    needs("curl")
    async with proxied(person) as (run, port, records):
        said, _ = await run(f"curl -sS http://evil.example:{port}/notes")
        assert said == f"zot: evil.example:{port} is not on the list of allowed hosts\n"
        assert (await run(f"curl -sS --fail https://evil.example:{port}/"))[1] != 0
    assert {(record.host, record.outcome) for record in records} == {("evil.example", "refused")}


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (
            "echo $HTTP_PROXY $https_proxy $ALL_PROXY",
            "http://127.0.0.1:3128 http://127.0.0.1:3128 http://127.0.0.1:3128\n",
        ),
        ("grep -o 'SigIgn.*' /proc/self/status", None),  # signals that the tests were started with may be ignored
        ("echo [$LC_CTYPE]", "[]\n"),
        ("ls /proc/self/fd | wc -l", "4\n"),
        ("all=$(ps -e -o comm=); sort -u <<< $all | wc -l", None),
        ("echo $0 $$", None),
        ("yes | head -1", "y\n"),
        ("kill -9 $$", ""),
        ("exit 7", ""),
    ],
)
async def test_a_command_is_what_it_is_without_a_proxy(person, command, output):
    async with proxied(person) as (run, _, _):
        here = await run(command)
        there = await person.run(person.jail(Mechanism.BUBBLEWRAP), command)
    if output is None or "PROXY" not in command:
        assert here == there
    assert output in {here[0], None}


@pytest.mark.parametrize(
    "attempt",
    [
        'import fcntl; fcntl.ioctl(s.socket(), 0x8914, b"lo".ljust(16, b"\\0") + bytes(24))',  # SIOCSIFFLAGS: down
        "s.socket(s.AF_INET, s.SOCK_RAW, 1)",
        's.socket(s.AF_PACKET, s.SOCK_RAW, 768).bind(("lo", 0))',
    ],
)
async def test_a_command_has_no_rights_over_its_network(person, attempt):
    person.extra = {"PY": sys.executable}
    async with proxied(person) as (run, _, _):
        said, code = await run(f"$PY -c 'import socket as s; {attempt}' 2>&1")
    assert (code, "Operation not permitted" in said) == (1, True), said


async def test_a_command_reaches_no_server_of_another_command(person):
    serve = 'import socket as s, time; a = s.create_server(("127.0.0.1", 8000)); print(1, flush=True); time.sleep(1000)'
    person.extra = {"PY": sys.executable}
    async with outlet(person) as (way, _):
        jail = person.jail(Mechanism.BUBBLEWRAP, network=Network.PROXIED)
        server, _ = await person.started(jail, f"$PY -c '{serve}'", way)
        async with server:
            said, code = await person.run(jail, "exec 3<>/dev/tcp/127.0.0.1/8000", way)
    assert (code, "refused" in said) == (1, True)


async def test_a_server_of_the_command_is_reached_without_the_proxy(person):
    needs("curl")
    serve = "$PY -m http.server --bind 127.0.0.1 8000 --directory ~ >/dev/null 2>&1 &"
    person.extra = {"PY": sys.executable}
    async with proxied(person) as (run, _, records):
        assert await run(f"{serve} curl -s --retry 9 --retry-connrefused http://localhost:8000/notes; kill $!") == (
            "readable",
            0,
        )
    assert records == []


async def test_commands_of_one_jail_reach_it_side_by_side(person):
    needs("curl")
    async with proxied(person) as (run, port, _), asyncio.TaskGroup() as group:
        runs = [group.create_task(run(f"curl -sS http://server.example:{port}/notes")) for _ in range(5)]
    assert [each.result() for each in runs] == [("readable", 0)] * 5


async def test_a_command_whose_proxy_has_gone_says_so_and_has_no_network(person):
    person.way = "handover"
    async with outlet(person) as (way, _):
        jail, once = person.jail(Mechanism.BUBBLEWRAP, network=Network.PROXIED), Once(way)
        await person.run(jail, "true", once)
        said, code = await person.run(jail, "echo here", once)
    assert code == 0
    assert said.startswith("zot: the proxy cannot be reached, so there is no network: ")
    assert said.endswith("here\n")


class Once:
    """An outlet whose socket is used twice."""

    def __init__(self, way):
        self.path = way.admit()

    def entrance(self):
        return None

    def admit(self):
        Path(self.path).touch()
        return self.path


async def test_with_landlock_there_is_no_network_and_the_jail_says_so(person):
    async with outlet(person, "*:*") as (way, records):
        jail = person.jail(Mechanism.LANDLOCK, network=Network.PROXIED)
        assert any("install bubblewrap" in clause for clause in jail.lacks)
        with socket.create_server(("127.0.0.1", 0)) as server:
            assert (await person.run(jail, f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}", way))[1] != 0
        jail.close()
    assert records == []


async def test_an_interpreter_that_commands_may_change_is_not_used(person, monkeypatch):
    needs("bwrap")
    python = person.work / "python"
    shutil.copy("/bin/true", python)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(JailError, match="may change"):
        find_jail(JailSite(str(person.work), person.env, Network.PROXIED), [Mechanism.BUBBLEWRAP])


async def test_without_an_outlet_a_command_has_no_network(person):
    needs("bwrap")
    jail = person.jail(Mechanism.BUBBLEWRAP, network=Network.PROXIED)
    with socket.create_server(("127.0.0.1", 0)) as server:
        said, code = await person.run(jail, f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}")
    assert (code != 0, "refused" in said) == (True, True)


async def test_pip_downloads_a_package(person):
    site = person.home / "site"
    (site / "simple" / "thing").mkdir(parents=True)
    wheel = site / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing.py", "")
        archive.writestr("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    (site / "simple" / "thing" / "index.html").write_text(f'<a href="/{wheel.name}">{wheel.name}</a>')
    person.extra = {"PY": sys.executable, "PIP_CONFIG_FILE": os.devnull}
    async with proxied(person, site) as (run, port, _):
        index = f"--index-url http://server.example:{port}/simple --trusted-host server.example"
        said, code = await run(f"$PY -m pip download --disable-pip-version-check -q --no-deps {index} thing 2>&1")
    assert (said, code) == ("", 0)
    assert (person.work / wheel.name).read_bytes() == wheel.read_bytes()


async def test_a_client_that_shows_only_the_status_line_shows_the_reason(person):
    person.extra = {"PY": sys.executable}
    async with proxied(person) as (run, _, _):
        said, _ = await run("$PY -c 'import urllib.request as r; r.urlopen(\"https://evil.example\")' 2>&1")
    assert "Tunnel connection failed: 403 zot: evil.example:443 is not on the list of allowed hosts" in said


async def test_git_clones_a_repository(person):
    repository(person.home / "origin")
    git(person.home, "clone", "-q", "--bare", "origin", "origin.git")
    git(person.home / "origin.git", "update-server-info")
    async with proxied(person) as (run, port, _):
        url = f"http://server.example:{port}/origin.git"
        assert await run(f"git clone -q {url} copy && git -C copy log --format=%s") == ("first\n", 0)


async def test_npm_installs_a_package(person):
    needs("npm")
    site = person.home / "site"
    site.mkdir()
    (person.home / ".npm").mkdir()
    manifest = {"name": "thing", "version": "1.0.0"}
    with tarfile.open(site / "thing-1.0.0.tgz", "w:gz") as archive:
        content = json.dumps(manifest).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    async with proxied(person, site) as (run, port, _):
        dist = {"tarball": f"http://server.example:{port}/thing-1.0.0.tgz"}
        listing = {"name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {**manifest, "dist": dist}}}
        (site / "thing").write_text(json.dumps(listing))
        flags = "--no-audit --no-fund --no-update-notifier --loglevel error"
        said, code = await run(f"npm install {flags} --registry http://server.example:{port}/ thing 2>&1")
    assert code == 0, said
    assert (person.work / "node_modules" / "thing" / "package.json").exists()
