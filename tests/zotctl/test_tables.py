"""Tables of real commands: wide characters do not shift the columns behind them."""

import pytest
from wcwidth import wcswidth

NAMES = ["plain", "漢字のセッション", "👩‍👩‍👧 family", "cafe\u0301"]
"""Names of sessions: ASCII, wide characters, an emoji of several characters, a combining accent."""


@pytest.fixture
def named(live):
    with live.connect() as connection:
        for name in NAMES:
            connection.call("session.create", cwd=str(live.cwd), name=name, provider="openai", keyless=True)


@pytest.mark.parametrize("command", [("sessions",), ("top", "--once", "--delay", "0.2")])
@pytest.mark.usefixtures("named")
def test_the_state_column_is_aligned_for_any_name(live, command):
    code, out, err = live.zotctl(*command)
    assert (code, err) == (0, "")
    rows = [line for line in out.splitlines() if "  idle  " in line]
    assert len(rows) == len(NAMES)
    head = next(line for line in out.splitlines() if "STATE" in line)
    assert {wcswidth(row[: row.index("  idle  ") + 2]) for row in rows} == {head.index("STATE")}
