"""`zotctl metrics`, and escaped control characters in JSON output."""

import json

import pytest

from zotctl import output


def test_figures_are_shown_one_a_line(live):
    live.session()
    code, out, err = live.zotctl("metrics")
    assert (code, err) == (0, "")
    shown = dict(line.split() for line in out.splitlines())
    assert (shown["sessions"], shown["clients"], shown["evictions"]) == ("1", "1", "0")
    assert int(shown["descriptors"]) > 0


def test_the_same_as_json(live):
    code, out, _ = live.zotctl("metrics", "--json")
    found = json.loads(out)
    assert (code, found["v"], found["sessions"]) == (0, 1, 0)
    assert found["rss_bytes"] > 10 * 1024 * 1024


def test_it_does_not_start_the_daemon(shell):
    code, out, err = shell.zotctl("metrics")
    assert (code, out) == (1, "")
    assert "not running" in err


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\x7f", "\x80", "\x9b", "\x9f", "\u202e", "\u2066", "\n"])
def test_a_character_that_could_steer_a_terminal_is_escaped_and_comes_back(sign, capsys):
    output.print_json({"text": f"a{sign}é"})
    printed = capsys.readouterr().out.removesuffix("\n")
    assert sign not in printed
    assert "é" in printed
    assert json.loads(printed) == {"text": f"a{sign}é"}
