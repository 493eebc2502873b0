"""Nothing leaves the machine before a prompt."""

import re
import signal

from tests.needs import needs
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.wire_client import WireClient

ALONE = ["unshare", "--user", "--map-root-user", "--net"]
"""A network namespace with nothing in it: each attempt to connect fails, and is seen."""

FAMILY = re.compile(r"sa_family=(AF_\w+)")

HARMLESS = {"AF_UNIX", "AF_NETLINK"}


def traced(tmp_path):
    needs("strace")
    return ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(tmp_path / "trace")]


def families(tmp_path):
    """Kinds of addresses that anything of the daemon wanted to reach."""
    return set(FAMILY.findall((tmp_path / "trace").read_text()))


async def test_a_daemon_without_a_network_does_everything_but_a_prompt_and_reaches_for_nothing(tmp_path):
    daemon = DaemonProcess(tmp_path, wrapper=[*ALONE, *traced(tmp_path)])
    daemon.start()
    try:
        async with WireClient.connect(daemon.place.socket) as client:
            await client.ask("hello", role="admin")
            env = {"PATH": daemon.place.env["PATH"], "ANTHROPIC_API_KEY": "sk-nobody", "OPENAI_API_KEY": "sk-nobody"}
            for vendor in ("anthropic", "openai"):
                await client.ask("session.create", cwd=str(daemon.place.cwd), provider=vendor, env=env, name=vendor)
                session = (await client.ask("session.get", session=vendor))["id"]
                for command in ("attach", "get_state", "get_models", "session.export"):
                    await client.ask(command, session=session)
            await client.ask("get_models", all=True)
            assert families(tmp_path) <= HARMLESS
            await client.ask("prompt", session=session, message="go")
            await client.until("retry")
            assert not families(tmp_path) <= HARMLESS  # the trace sees what it has to
            await client.ask("daemon.shutdown")
            await client.rest()
        assert daemon.wait() == 0
    finally:
        daemon.end(signal.SIGKILL)
