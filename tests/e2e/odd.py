"""What tests about other agents share: a home that knows `zotd.testing.odd_agent`, and looking at events."""

import sys

import psutil

from zotd.testing.live_daemon import ROOT


def home_that_knows_it(folder):
    """Make the home in `folder`, before a daemon has it."""
    home = folder / "zot"
    home.mkdir(mode=0o700)
    command = f'["{sys.executable}", "-m", "zotd.testing.odd_agent"]'
    (home / "config.toml").write_text(f'[adapters.odd]\ncommand = {command}\ntitle = "Odd"\nstart_s = 40\n')


def opener(house):
    """`await odd(...)`: a session that the scripted agent runs; how it `behaves`, and whether it stores its sessions."""

    async def odd(client=None, *, behaves="", stores=False, **options):
        store = house.place.folder / "store"
        store.mkdir(exist_ok=True)
        env = {
            "PATH": house.place.env["PATH"],
            "HOME": house.place.env["HOME"],
            "PYTHONPATH": str(ROOT),
            "ODD": behaves,
            "ODD_STORE": str(store) if stores else "",
        }
        client = client or await house.connect(client={"name": "ann"}, can_approve=True)
        wanted = {"agent": "odd", "provider": None, "base_url": None, "secrets": None, "env": env}
        return await house.create("openai", None, client, **(wanted | options))

    return odd


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


def is_odd(process):
    try:
        return "zotd.testing.odd_agent" in process.cmdline()
    except psutil.Error:  # another child, which is ending
        return False
