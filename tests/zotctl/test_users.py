"""`zotctl users`."""

import json
from datetime import UTC, datetime


def test_without_users_the_list_is_empty(live):
    head, *rows = live.zotctl("users")[1].splitlines()
    assert head.split() == ["USER", "SESSIONS", "LIMIT", "USD", "TODAY", "LIMIT"]
    assert rows == []
    found = json.loads(live.zotctl("users", "--json")[1])
    assert found["users"] == []
    assert found["day"][:4] == str(datetime.now(UTC).year)
