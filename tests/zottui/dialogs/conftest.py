"""A desk for dialogs."""

import pytest

from tests.zottui.desk import FakeDesk
from tests.zottui.widgets.states import LIVE


@pytest.fixture
async def desk():
    async with FakeDesk(LIVE) as desk:
        yield desk
