"""Jobs on the page: a line for each that runs, and a button that ends it."""

import sys

import pytest
from playwright.async_api import expect

from tests.page.world import entry
from zotd.testing.script import CallPart, calls, text

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVE = "import socket; server = socket.create_server(('127.0.0.1', 0)); print(server.getsockname()[1], flush=True); server.accept()"


def job(command):
    return CallPart("bash", {"command": command, "background": True})


async def test_a_job_is_shown_with_its_port_until_it_is_stopped(world, token):
    world.answers.extend([calls(job(f'exec {sys.executable} -c "{SERVE}"')), text("It serves.")])
    session = await world.session("Serving", mode="yolo")
    async with world.page(token, session) as page:
        shown = page.get_by_role("region", name="Jobs")
        await expect(page.get_by_label("Prompt")).to_be_visible()
        await expect(shown).to_be_hidden()
        await world.run(session, "serve")
        await expect(entry(page, "It serves.")).to_be_visible()
        await expect(shown.get_by_role("listitem")).to_contain_text("running, listens on port")
        (found,) = (await world.ask("session.jobs", session=session))["jobs"]
        await expect(shown.get_by_role("listitem")).to_contain_text(f"port {found['ports'][0]}")
        await shown.get_by_role("button", name="Stop j1").click()
        await expect(shown).to_be_hidden()
    (found,) = (await world.ask("session.jobs", session=session))["jobs"]
    assert found["state"] == "stopped"


async def test_who_may_only_read_sees_the_jobs_of_a_session_that_is_opened_later_without_a_button(world):
    world.answers.extend([calls(job("exec sleep 600")), text("It waits.")])
    session = await world.session("Reading", mode="yolo")
    await world.run(session, "wait")
    async with world.page(await world.token("reader", "read"), session) as page:
        shown = page.get_by_role("region", name="Jobs")
        await expect(shown.get_by_role("listitem")).to_have_text("j1 exec sleep 600 running")
        await expect(shown.get_by_role("button")).to_have_count(0)
    await world.ask("session.job_stop", session=session, job="j1")
