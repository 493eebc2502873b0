"""SIGHUP: a command of the model can send it, too, so it brings nothing that permits more."""

import asyncio
import os
import signal

import pytest

from tests.e2e.shop import Shop
from zotd.testing.script import CallPart, calls, text

ALLOW_ALL = '[[rules]]\ntool = "*"\naction = "allow"\n'

BASE = 'nested = "off"\n[approval]\nmode = "ask"\n[[rules]]\ntool = "bash"\nmatch = "rm*"\naction = "deny"\n'

WIDER = {
    "an allow": BASE + ALLOW_ALL,
    "a deny less": '[approval]\nmode = "ask"\n',
    "a wider mode": BASE.replace('"ask"', '"yolo"'),
    "nesting": BASE.replace('"off"', '"submit"'),
    "another server": BASE + '[providers.openai]\nbase_url = "http://127.0.0.1:9/v1"\n',
    "a program that is asked for keys": 'api_key_command = ["evil", "{provider}"]\n' + BASE,
    "an open network": BASE + '[sandbox]\nnetwork = "open"\n',
    "one more host": BASE + '[sandbox]\nhosts = ["example.org"]\n',
    "more to spend": BASE + "[budget]\nday_usd = 1000.0\n",
    "other quotas": BASE + '[users."*"]\nusd_per_day = 1000.0\n',
}


@pytest.fixture
def variables():
    """Without the variable of most tests, which would be stronger than the file."""
    return {"ZOT_APPROVAL_MODE": ""}


async def hung_up(house, client):
    """Send the signal, and wait until it has been obeyed."""
    log = (house.place.home / "logs" / "zotd.log").read_text
    before = log().count("the configuration was reloaded")
    os.kill(house.daemon.pid, signal.SIGHUP)
    async with asyncio.timeout(30):
        while log().count("the configuration was reloaded") == before:
            await client.ask("ping")
    return (await client.ask("daemon.status"))["warnings"]


@pytest.fixture
async def admin(process):
    (process.place.home / "config.toml").write_text(BASE)
    client = await process.connect(role="admin")
    await client.ask("daemon.reload")
    return client


@pytest.mark.parametrize("wider", WIDER)
async def test_what_permits_more_waits_for_a_person(process, admin, wider):
    (process.place.home / "config.toml").write_text(WIDER[wider])
    (warning,) = await hung_up(process, admin)
    assert "to apply them, run: zotctl reload" in warning
    assert len((await admin.ask("daemon.reload"))["applied"]) == 1
    assert (await admin.ask("daemon.status"))["warnings"] == []


ROWS = {
    "providers.openai.headers": '[providers.openai.headers]\n"X-Team" = "blue"\n',
    "models": '[[models]]\nprovider = "openai"\nid = "m"\nprices = {input = 0, output = 0}\n',
}


@pytest.mark.parametrize("name", ROWS)
async def test_a_row_of_a_vendor_or_model_waits_for_a_person_and_then_for_a_restart(process, admin, name):
    (process.place.home / "config.toml").write_text(BASE + ROWS[name])
    (warning,) = await hung_up(process, admin)
    assert f"other values of {name}" in warning
    reloaded = await admin.ask("daemon.reload")
    assert (reloaded["applied"], name in reloaded["restart"]) == ([], True)


async def test_what_permits_less_and_what_permits_nothing_comes_with_it(process, admin):
    stricter = BASE.replace('"ask"', '"read-only"') + '[[rules]]\ntool = "write"\naction = "ask"\n'
    stricter += '[sandbox]\nnetwork = "off"\ndefault_hosts = false\n'
    (process.place.home / "config.toml").write_text(f"compact_at = 0.5\n{stricter}")
    assert await hung_up(process, admin) == []
    assert (await admin.ask("daemon.reload"))["applied"] == []


async def test_no_nesting_comes_with_it(process, admin):
    file = process.place.home / "config.toml"
    file.write_text(BASE.replace('"off"', '"submit"'))
    await admin.ask("daemon.reload")
    file.write_text(BASE)
    assert await hung_up(process, admin) == []
    assert (await admin.ask("daemon.reload"))["applied"] == []


async def test_an_approved_command_does_not_allow_the_next_one_by_a_rule_of_its_own(process, admin, model, look):
    write = f"printf '%s' '{ALLOW_ALL}' >> $ZOT_HOME/config.toml && kill -HUP {process.daemon.pid} && zotctl ping"
    second = calls(CallPart("bash", {"command": "echo unasked"}))
    talk = await Shop(process).open(await model(calls(CallPart("bash", {"command": write})), second, text("Asked.")))
    await talk.client.ask("hello", can_approve=True)
    await talk.ask("prompt", message="go")
    for decision in ("allow", "deny"):
        request = (await talk.client.until("approval_requested"))[-1]
        await talk.ask("approve", approval=request["approval"], args_digest=request["args_digest"], decision=decision)
    events = await talk.client.until("done")
    assert "unasked" not in str(look.only(events, "tool_result"))
    (warning,) = (await admin.ask("daemon.status"))["warnings"]
    assert "other values of rules" in warning
