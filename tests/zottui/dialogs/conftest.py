"""A fake application for dialogs."""

import pytest

from tests.zottui.fake_ui import FakeUi
from tests.zottui.widgets.states import LIVE


@pytest.fixture
async def fake_ui():
    async with FakeUi(LIVE) as fake_ui:
        yield fake_ui
