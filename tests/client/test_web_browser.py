"""Whether a browser is here, and opening a page in it."""

import os
import sys

import pytest

from zotd.client import web_browser


@pytest.mark.parametrize(
    ("env", "here"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, False),
        ({"WAYLAND_DISPLAY": "wayland-0", "SSH_TTY": "/dev/pts/1"}, False),
        ({"BROWSER": "lynx", "SSH_CONNECTION": "1 2 3 4"}, True),
        ({}, sys.platform == "darwin"),
    ],
)
def test_a_browser_is_here_if_its_user_sees_it(env, here):
    assert web_browser.is_here(env) is here


def test_a_page_is_opened_in_the_browser_of_the_environment_and_prints_nothing(tmp_path, capfd):
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho noise; echo "$1" > {tmp_path}/opened\n')
    program.chmod(0o755)
    web_browser.open_page("https://x.example/?a=1&b=2", {**os.environ, "BROWSER": f"{program} %s"})
    assert (tmp_path / "opened").read_text() == "https://x.example/?a=1&b=2\n"
    assert capfd.readouterr() == ("", "")
