import socket
from ipaddress import ip_address

import pytest

from zotd.proxy.addresses import special_kind


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("127.255.0.1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.100.100.200", "private"),
        ("169.254.169.254", "link-local"),
        ("168.63.129.16", "metadata"),
        ("192.0.0.192", "reserved"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fd00:ec2::254", "private"),
        ("fe80::1", "link-local"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("::ffff:10.0.0.1", "private"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b:1::a", "private"),
        ("2002:7f00:1::", "loopback"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
    ],
)
def test_an_address_that_is_no_machine_on_the_internet_is_special(address, kind):
    assert kind in (special_kind(ip_address(address)) or "")


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::"],
)
def test_an_ordinary_address_is_not(address):
    assert special_kind(ip_address(address)) is None


def test_the_network_before_and_after_a_special_one_is_ordinary():
    assert special_kind(ip_address("11.0.0.0")) is None
    assert special_kind(ip_address("9.255.255.255")) is None


def test_every_address_of_this_machine_is_special():
    own = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    assert [address for address in own if special_kind(ip_address(address.partition("%")[0])) is None] == []
