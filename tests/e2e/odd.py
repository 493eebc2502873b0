"""What tests about other agents share: a daemon that knows `zotd.testing.odd_agent`, its sessions, and looking at events."""

import sys

import psutil
import pytest

from zotd.testing.live_daemon import ROOT


def make_known(home):
    """Configure the scripted agent in a home of zot."""
    home.mkdir(mode=0o700, exist_ok=True)
    command = f'["{sys.executable}", "-m", "zotd.testing.odd_agent"]'
    (home / "config.toml").write_text(f'[adapters.odd]\ncommand = {command}\ntitle = "Odd"\nstart_s = 40\n')


@pytest.fixture
def odd_is_known(tmp_path):
    """The daemon knows the scripted agent when it starts: for `usefixtures`, which comes before the daemon's own fixture."""
    make_known(tmp_path / "zot")


def odd_env(house, *, behaves="", stores=False):
    """The environment of a session: how the agent `behaves`, and whether it stores its sessions."""
    store = house.place.folder / "store"
    store.mkdir(exist_ok=True)
    return {
        "PATH": house.place.env["PATH"],
        "HOME": house.place.env["HOME"],
        "PYTHONPATH": str(ROOT),
        "ODD": behaves,
        "ODD_STORE": str(store) if stores else "",
    }


def opener(house):
    """`await odd(...)`: a session that the scripted agent runs; `behaves` and `stores` as in `odd_env`."""

    async def odd(client=None, *, behaves="", stores=False, **options):
        client = client or await house.connect(client={"name": "ann"}, can_approve=True)
        env = odd_env(house, behaves=behaves, stores=stores)
        wanted = {"agent": "odd", "provider": None, "base_url": None, "secrets": None, "env": env}
        return await house.create("openai", None, client, **(wanted | options))

    return odd


@pytest.fixture
def odd(house):
    """As `opener` has it, in the daemon of this loop."""
    return opener(house)


def odd_processes(pid=None):
    """The processes of the scripted agent below this process, or below another one."""
    return [one for one in psutil.Process(pid).children(recursive=True) if _is_odd(one)]


def _is_odd(process):
    try:
        return "zotd.testing.odd_agent" in process.cmdline()
    except psutil.Error:  # another child, which is ending
        return False


def saw(events, kind):
    return [event for event in events if event["type"] == kind]


def ended(events):
    """How a run ended: the sentence of its error, or None."""
    errors = saw(events, "error")
    return errors[-1]["message"] if errors else None


async def asked_by(talk, message):
    await talk.ask("prompt", message=message)
    return (await talk.until("approval_requested"))[-1]


async def decide(talk, event, decision="allow", **fields):
    return await talk.ask(
        "approve", approval=event["approval"], args_digest=event["args_digest"], decision=decision, **fields
    )
