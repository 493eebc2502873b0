"""Extras are optional packages: a daemon imports one for those who use it, and for no one else."""

from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import CallPart, calls, text

EXTRAS = {
    "bedrock": ("boto3", "botocore"),
    "local": ("xllamacpp",),
    "keyring": ("keyring", "secretstorage"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter"),  # its API comes with Anthropic's SDK
    "vertex": ("google.auth",),
}
"""Packages that each extra brings."""


@pytest.fixture
async def imported(tmp_path, model):
    """`await imported(vendor, config)`: the modules that a daemon has imported when it has served a run with a tool call."""

    async def imported(vendor, config=""):
        server = await model(calls(CallPart("bash", {"command": "true"})), text("Ran."))
        home = tmp_path / "zot"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text(config)
        # Python itself then reports every import, with no code of ours in the daemon.
        env = {"PYTHONPROFILEIMPORTTIME": "1", "ZOT_KEYRING": "true"}
        daemon = DaemonProcess(tmp_path, env, is_child=True)
        async with AsyncExitStack() as stack:
            stack.enter_context(daemon)
            talk = await House(stack, daemon.place, daemon).create(vendor, server)
            await talk.run()
            daemon.end()
        lines = [line for line in daemon.stderr.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip() for line in lines}

    return imported


def brought(modules, extra):
    """The modules that come with an extra."""
    return {name for name in modules for package in EXTRAS[extra] if f"{name}.".startswith(f"{package}.")}


async def test_a_daemon_that_uses_no_extra_imports_none(imported, vendor):
    modules = await imported(vendor)
    assert vendor in modules
    assert [name for extra in EXTRAS for name in brought(modules, extra)] == []


async def test_a_daemon_that_exports_traces_imports_what_that_needs_and_no_other_extra(imported):
    modules = await imported("openai", '[telemetry]\ntraces = true\nendpoint = "http://127.0.0.1:9"\n')
    assert {extra for extra in EXTRAS if brought(modules, extra)} == {"otel"}
