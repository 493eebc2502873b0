import pytest

from zotd.proxy import AllowList, HostError, HostQuestion, parse_rule
from zotd.proxy.default_hosts import DEFAULT_HOSTS
from zotd.proxy.hosts import parse_authority
from zotd.proxy.rules import WEB_PORTS


def covers(rule, remote):
    return parse_rule(rule).covers(parse_authority(remote))


@pytest.mark.parametrize(
    ("rule", "remote"),
    [
        ("example.org", "example.org:443"),
        ("example.org", "example.org:80"),
        ("Example.ORG.", "example.org:443"),
        ("bücher.example", "xn--bcher-kva.example:443"),
        ("example.org:8080", "example.org:8080"),
        ("example.org:*", "example.org:22"),
        ("*.example.org", "a.b.example.org:443"),
        ("*", "anything.example:443"),
        ("*:*", "anything.example:22"),
        ("*", "1.1.1.1:443"),
        ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("127.0.0.1:8000", "2130706433:8000"),
        ("localhost:8000", "localhost:8000"),
        ("localhost:8000", "127.0.0.1:8000"),
        ("localhost:8000", "[::1]:8000"),
        ("10.0.0.0/8", "10.9.8.7:443"),
        ("[::1]:80", "[::1]:80"),
        ("fd00::/8", "[fd12::1]:443"),
        ("[fd00::/8]:22", "[fd12::1]:22"),
    ],
)
def test_a_rule_covers_what_it_names(rule, remote):
    assert covers(rule, remote)


@pytest.mark.parametrize(
    ("rule", "remote"),
    [
        ("example.org", "example.org:22"),
        ("example.org", "a.example.org:443"),
        ("example.org", "example.org.evil.example:443"),
        ("example.org", "notexample.org:443"),
        ("*.example.org", "example.org:443"),
        ("*.example.org", "notexample.org:443"),
        ("example.org:8080", "example.org:443"),
        ("*", "127.0.0.1:443"),
        ("*", "169.254.169.254:80"),
        ("*", "[::ffff:10.0.0.1]:80"),
        ("*", "example.org:22"),
        ("localhost:8000", "10.0.0.1:8000"),
        ("localhost:8000", "localhost:8001"),
        ("127.0.0.1:8000", "127.0.0.2:8000"),
        ("10.0.0.0/8", "11.0.0.1:443"),
        ("10.0.0.0/8", "[::1]:443"),
    ],
)
def test_a_rule_covers_nothing_else(rule, remote):
    assert not covers(rule, remote)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://example.org",
        "example.org/",
        "example.org/path",
        "*example.org",
        "a.*.example",
        "*.1.2.3.4",
        "example.org:http",
        "example.org:0",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "user@example.org",
        "**",
        "*.",
    ],
)
def test_a_malformed_rule_is_named(text):
    with pytest.raises(HostError) as error:
        parse_rule(text)
    assert str(error.value).startswith(f"{text!a}: ")


def test_every_default_host_is_a_rule_for_the_web_only():
    assert len(set(DEFAULT_HOSTS)) == len(DEFAULT_HOSTS)
    assert [host for host in DEFAULT_HOSTS if parse_rule(host).ports != WEB_PORTS or "*" in host] == []


@pytest.mark.parametrize(
    ("remote", "name", "reason"),
    [
        ("evil.example:443", "", "evil.example:443 is not on the list of allowed hosts"),
        ("10.0.0.1:80", "", "10.0.0.1:80 is a private address, and not on the list of allowed hosts"),
        (
            "10.0.0.1:80",
            "intranet.example",
            "intranet.example leads to a private address, and 10.0.0.1:80 is not on the list of allowed hosts",
        ),
    ],
)
async def test_a_refusal_says_what_would_have_to_be_allowed(remote, name, reason):
    question = HostQuestion(parse_authority(remote), name)
    decision = await AllowList([parse_rule("example.org")]).decide(question)
    assert (decision.allowed, decision.reason) == (False, reason)
