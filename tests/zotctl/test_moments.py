"""Times as people type them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from zotctl.moments import moment_of
from zotd.client.errors import ClientError

NOW = datetime(2026, 11, 27, 16, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("17:30", "2026-11-27T17:30:00+00:00"),
        ("9:05", "2026-11-28T09:05:00+00:00"),
        ("+30m", "2026-11-27T16:30:00+00:00"),
        ("+1d1s", "2026-11-28T16:00:01+00:00"),
        ("2026-12-24 18:00", "2026-12-24T18:00:00+00:00"),
        ("2026-12-24T18:00:00+02:00", "2026-12-24T16:00:00+00:00"),
        ("2026-12-24", "2026-12-24T00:00:00+00:00"),
    ],
)
def test_a_time_is_read_in_many_forms(text, moment):
    assert moment_of(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "25:00", "+5", "+", "2026-13-01", "+99999999d"])
def test_anything_else_is_refused_with_the_forms_that_there_are(text):
    with pytest.raises(ClientError, match="use a form such as 17:30"):
        moment_of(text, NOW)


def test_the_time_may_be_that_of_another_zone():
    assert moment_of("+1h", NOW.astimezone(timezone(timedelta(hours=9)))) == "2026-11-27T17:00:00+00:00"
