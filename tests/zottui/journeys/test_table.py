"""The table and the tests say the same."""

import importlib
import inspect
from pathlib import Path

from tests.zottui.journeys.table import JOURNEYS, LATER


def test_every_journey_has_a_test_or_is_marked_as_pending():
    made = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        module = importlib.import_module(f"tests.zottui.journeys.{path.stem}")
        made |= {test.journey for _, test in inspect.getmembers(module, lambda one: hasattr(one, "journey"))}
    assert made | set(LATER) == set(JOURNEYS)
    assert not made & set(LATER)
