"""Addresses at which daemons reach each other."""

import pytest

from zotd.api.fleet.address import door_of, problem_of, stands_for_all


@pytest.mark.parametrize(
    "url",
    ["wss://box.example.org:7777", "ws://127.0.0.1:8765/v1", "ws://[::1]:1", "ws://localhost:1", "wss://[fe80::1]:2/"],
)
def test_a_door_with_tls_or_on_this_machine_is_used(url):
    assert problem_of(url) == ""
    assert door_of(url).endswith("/v1")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ws://box.example.org:7777", "encrypted"),
        ("ws://10.0.0.1:1", "encrypted"),
        ("https://box:1", "wss://host:port"),
        ("wss://box", "wss://host:port"),
        ("wss://box:1/other", "wss://host:port"),
        ("wss://box:port", "not a URL"),
        ("wss://box:99999", "not a URL"),
        ("wss://[::1", "not a URL"),
        ("", "wss://host:port"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(url, problem):
    assert problem in problem_of(url)


def test_an_address_that_stands_for_all_is_none_for_others():
    assert stands_for_all("wss://0.0.0.0:7777/v1")
    assert stands_for_all("wss://[::]:7777/v1")
    assert not stands_for_all("wss://box:7777/v1")
