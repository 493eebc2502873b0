"""Flags of `zot`."""

import pytest

from zotd.client.options import parser


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--no-extensions", "no_ext", True),
        ("-y", "mode", "yolo"),
        ("--yolo", "mode", "yolo"),
        ("--no-yolo", "mode", "ask"),
    ],
)
def test_flags_of_the_original_are_accepted(flag, name, value):
    assert getattr(parser().parse_args([flag]), name) == value
