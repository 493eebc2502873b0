"""How long a vendor asks to wait."""

from datetime import UTC, datetime

import pytest

from zotd.providers.shared.failures import retry_after_s

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_the_wait_is_read_in_each_form_that_vendors_use(headers, seconds):
    assert retry_after_s(headers, NOW) == seconds
