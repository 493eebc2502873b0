"""A world for a module of tests, and the token that opens its page."""

import shutil

import psutil
import pytest
import pytest_asyncio
from playwright.async_api import async_playwright, expect

from tests.needs import needs
from tests.page.world import WAIT_MS, opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    needs("chromium")
    async with async_playwright() as playwright:
        # Chromium's own sandbox does not work for root, who tests in a container; the pages here are ours.
        chromium = shutil.which("chromium")
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        expect.set_options(timeout=WAIT_MS)
        async with opened(tmp_path_factory.mktemp("page"), browser) as world:
            yield world
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def token(world):
    return await world.token("tests")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """The daemon and the browser outlive a test, and end with the module: Playwright and the daemon see to that."""
    before = len(psutil.Process().children())
    yield
    assert len(psutil.Process().children()) == before or before == 0
