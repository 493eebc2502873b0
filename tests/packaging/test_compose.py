"""The compose file: its schema, and what its services do, without containers and with a real server."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import yaml

from tests.needs import needs
from tests.packaging.manifests import READY_S, ROOT, Container, entrypoint, make_secrets, work_and_drain
from zotctl.daemon import STOP_S
from zotd.config.sections import LimitsSection
from zotd.testing.live_daemon import free_port
from zotd.testing.postgres_server import MISSING, PostgresServer

FILE = ROOT / "packaging/compose/compose.yaml"

pytestmark = pytest.mark.timeout(6 * READY_S)


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(FILE.read_text().replace("$$", "$"))["services"]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    needs("openssl")
    return make_secrets(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def server():
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=False)
    yield server
    server.close()


@pytest.fixture
async def database(server, services, secrets, tmp_path):
    """The address of the database that the service `roles` has made, which asks the daemons' role for its password."""
    service = services["roles"]
    (mount,) = service["volumes"]
    source, target, _ = mount.split(":")
    places = {target: str((FILE.parent / source).resolve()), "/run/secrets": str(secrets)}
    env = service["environment"] | {"PGHOST": str(server.directory), "PGUSER": "admin"}
    (tmp_path / "roles").mkdir()
    container = Container(tmp_path / "roles", env, places, programs=str(server.programs))
    for _ in range(2):  # it runs at each start of the services
        code, said = await container.run([*service["entrypoint"], *service["command"]])
        assert code == 0, said
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        (server.data / "pg_hba.conf").write_text("local all admin trust\nlocal all all scram-sha-256\n")
        connection.execute("SELECT pg_reload_conf()")
    return f"postgresql://zot@/zot?host={server.directory}"


def test_it_is_valid():
    check = Path(sys.executable).with_name("check-jsonschema")
    command = [str(check), "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=READY_S)
    assert done.returncode == 0, done.stdout


def test_all_files_that_it_names_are_there_or_made_by_the_script(services, secrets):
    content = yaml.safe_load(FILE.read_text())
    assert {Path(one["file"]).name for one in content["secrets"].values()} == {file.name for file in secrets.iterdir()}
    assert all(Path(one["file"]).name == name for name, one in content["secrets"].items())
    for service in services.values():
        if build := service.get("build"):
            assert ((FILE.parent / build["context"]).resolve() / build["dockerfile"]).is_file()
        assert set(service.get("secrets", [])) <= set(content["secrets"])


def test_a_daemon_has_time_to_drain(services):
    for name in daemons_of(services):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) >= LimitsSection().drain_s + STOP_S


def daemons_of(services):
    return [name for name, service in services.items() if "ZOT_HOME" in (service.get("environment") or {})]


def made(services, name, database, folder):
    """The container of a daemon; its volume and its work are below `folder`."""
    service, port = services[name], str(free_port())
    mounts = dict(reversed(volume.split(":")) for volume in service["volumes"])
    places = {target: str(folder / source) for target, source in mounts.items()}
    places |= {f"{name}:7777": f"127.0.0.1:{port}", "0.0.0.0:7777": f"127.0.0.1:{port}", name: "127.0.0.1"}
    env = {key: value for key, value in service["environment"].items() if value is not None}
    (folder / name).mkdir()
    return Container(folder / name, env | {"ZOT_JOURNAL_URL": database}, places)


def secrets_container(services, secrets, folder):
    """The container of the service that gives the daemons their secrets, and its command for the user of this test."""
    service = services["secrets"]
    (folder / "volumes").mkdir()
    for volume in service["volumes"]:
        source, target = volume.split(":")
        (folder / source).mkdir()
        (folder / "volumes" / Path(target).name).symlink_to(folder / source)
    (folder / "run").mkdir()
    for name in service["secrets"]:
        (folder / "run" / name).write_bytes((secrets / name).read_bytes())
    places = {"/volumes": str(folder / "volumes"), "/run/secrets": str(folder / "run")}
    command = [*service["entrypoint"], *service["command"]]
    command[-1] = command[-1].replace("-o 1000 -g 1000", f"-o {os.getuid()} -g {os.getgid()}")
    return Container(folder, {}, places), command


async def test_its_daemons_serve_each_others_sessions_and_hand_them_over_when_they_are_drained(
    services, secrets, database, tmp_path
):
    container, command = secrets_container(services, secrets, tmp_path)
    for _ in range(2):  # it runs at each start of the services
        code, said = await container.run(command)
        assert code == 0, said
    daemons = [made(services, name, database, tmp_path) for name in daemons_of(services)]
    _, *probe = services["zotd-1"]["healthcheck"]["test"]
    # The restart policy is `on-failure`: one that was drained has to end well, and stays away.
    assert await work_and_drain(daemons, entrypoint(), probe, ["zotctl", "drain"]) == (0, 0)
