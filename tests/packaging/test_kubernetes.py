"""The manifests for Kubernetes: their schema, and what their containers do, without a cluster and with a real server."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.needs import needs
from tests.packaging.manifests import READY_S, ROOT, Container, entrypoint, make_secrets, mounted, work_and_drain
from zotctl.daemon import STOP_S
from zotctl.fleet_ready import ANSWER_S
from zotd.config.sections import LimitsSection
from zotd.testing.live_daemon import free_port
from zotd.testing.postgres_server import MISSING, PostgresServer

FILE = ROOT / "packaging/kubernetes/zotd.yaml"

ROLES = ROOT / "packaging/postgresql/roles.sql"

pytestmark = pytest.mark.timeout(6 * READY_S)


@pytest.fixture(scope="module")
def objects():
    """Each object of the file, by its kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(FILE.read_text())}


@pytest.fixture(scope="module")
def pod(objects):
    return objects["StatefulSet"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """The Secret, as it is mounted."""
    needs("openssl")
    folder = tmp_path_factory.mktemp("secrets")
    mounted(make_secrets(folder / "made"), folder / "mounted")
    return folder / "mounted"


@pytest.fixture(scope="module")
def database(secrets):
    """The address of a database that asks the daemons' role for its password."""
    if MISSING is not None:
        pytest.skip(MISSING)
    server = PostgresServer(fsync=False)
    password = (secrets / "pgpass").read_text().strip().rpartition(":")[2]
    psql = [str(server.programs / "psql"), "-v", "ON_ERROR_STOP=1", "-q", server.url("postgres")]
    subprocess.run(
        [*psql, "-f", str(ROLES), "-c", f"ALTER ROLE zot PASSWORD '{password}'"], check=True, timeout=READY_S
    )
    (server.data / "pg_hba.conf").write_text("local all admin trust\nlocal all all scram-sha-256\n")
    subprocess.run([*psql, "-c", "SELECT pg_reload_conf()"], check=True, stdout=subprocess.DEVNULL, timeout=READY_S)
    yield f"postgresql://zot@/zot?host={server.directory}"
    server.close()


@pytest.mark.parametrize("version", ["1.28", "1.37"])
def test_they_are_valid(version):
    check = Path(sys.executable).with_name("kubernetes-validate")
    command = [str(check), "--strict", "--kubernetes-version", version, str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=READY_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_their_names_lead_to_each_other(objects, pod):
    claim, service, pods = objects["PersistentVolumeClaim"], objects["Service"], objects["StatefulSet"]["spec"]
    assert pods["serviceName"] == service["metadata"]["name"]
    labels = pods["template"]["metadata"]["labels"]
    assert labels == service["spec"]["selector"] == pods["selector"]["matchLabels"]
    assert labels == objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["work"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    known = {*volumes, *(one["metadata"]["name"] for one in pods["volumeClaimTemplates"])}
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= known
    (config, _) = pod["containers"][0]["envFrom"]
    assert config["configMapRef"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    # Others reach a daemon that is not ready: it has sessions.
    assert service["spec"]["publishNotReadyAddresses"]


def test_what_takes_long_has_the_time(pod):
    (container,) = pod["containers"]
    assert pod["terminationGracePeriodSeconds"] >= LimitsSection().drain_s + STOP_S
    assert container["readinessProbe"]["timeoutSeconds"] > ANSWER_S


def variables(container):
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def made(objects, pod, number, *, database, secrets, folder):
    """The pod with this number: the container of its start, and the one of its daemon."""
    (start,), (daemon,) = pod["initContainers"], pod["containers"]
    name = f"{objects['StatefulSet']['metadata']['name']}-{number}"
    host, port = f"{name}.{objects['Service']['metadata']['name']}", str(free_port())
    places = {
        "/var/lib/zot": str(folder / name / "volume"),
        "/secrets": str(secrets),
        f"{host}:7777": f"127.0.0.1:{port}",
        "0.0.0.0:7777": f"127.0.0.1:{port}",
        host: "127.0.0.1",
    }
    (folder / name / "volume").mkdir(parents=True)
    (folder / name / "volume").chmod(0o2775)  # as `fsGroup` leaves it
    env = {key: value.replace("$(POD_NAME)", name) for key, value in variables(daemon).items()}
    env = objects["ConfigMap"]["data"] | env | {"ZOT_JOURNAL_URL": database}
    return Container(folder / name, variables(start), places), Container(folder / name, env, places)


async def test_their_daemons_serve_each_others_sessions_and_hand_them_over_before_they_stop(
    objects, pod, database, secrets, tmp_path
):
    (start,), (container,) = pod["initContainers"], pod["containers"]
    daemons = []
    for number in range(objects["StatefulSet"]["spec"]["replicas"]):
        first, daemon = made(objects, pod, number, database=database, secrets=secrets, folder=tmp_path)
        for _ in range(2):  # a pod that is replaced finds what the one before has left
            code, said = await first.run([*start["command"], *start["args"]])
            assert code == 0, said
        daemons.append(daemon)
    probe = container["readinessProbe"]["exec"]["command"]
    drain = container["lifecycle"]["preStop"]["exec"]["command"]
    assert await work_and_drain(daemons, entrypoint(), probe, drain) == (0, 0)
    for daemon in daemons:  # the next pods of these names
        async with daemon.serving(entrypoint()):
            await daemon.ready(container["livenessProbe"]["exec"]["command"])
            await daemon.ready(probe)
