"""What is sent to an authorization server, and what its answers mean."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.oauth import protocol
from zotd.oauth.protocol import HttpAnswer, OAuthClient, OAuthError, Pkce, Problem, TokenSet

CLIENT = OAuthClient(
    client_id="me",
    token_url="https://auth.example/token",
    authorize_url="https://auth.example/authorize?tenant=1",
    revoke_url="https://auth.example/revoke",
    scope="a b",
)


def answer(said, status=200):
    return HttpAnswer(status, said if isinstance(said, bytes) else json.dumps(said).encode())


def jwt(claims):
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{part}.x"


def test_the_challenge_is_that_of_the_rfc():
    assert Pkce.of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").challenge == (
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )
    assert Pkce.new() != Pkce.new()
    assert 43 <= len(Pkce.new().verifier) <= 128


def test_the_authorization_url_keeps_the_parameters_of_the_server():
    pkce = Pkce.new()
    url = protocol.authorization_url(CLIENT, redirect_uri="http://127.0.0.1:9/callback", pkce=pkce, state="s")
    found = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert found == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "me",
        "redirect_uri": "http://127.0.0.1:9/callback",
        "scope": "a b",
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        "state": "s",
    }


def test_lifetimes_count_from_the_request():
    said = {"access_token": "t", "expires_in": "60", "refresh_token": "r"}
    found = protocol.tokens_of(answer(said), asked_at=1000.0)
    assert (found.expires_at, found.obtained_at, found.refresh_token) == (1060.0, 1000.0, "r")


def test_a_refresh_that_returns_no_refresh_token_keeps_the_old_one():
    before = TokenSet("old", refresh_token="r", id_token="i", scope="s")
    found = protocol.tokens_of(answer({"access_token": "new"}), asked_at=1.0, before=before)
    assert (found.access_token, found.refresh_token, found.id_token, found.scope) == ("new", "r", "i", "s")


def test_a_token_with_an_end_of_its_own_needs_no_lifetime():
    assert protocol.tokens_of(answer({"access_token": jwt({"exp": 5000})}), asked_at=1.0).expires_at == 5000.0
    assert protocol.tokens_of(answer({"access_token": "opaque"}), asked_at=1.0).expires_at is None


@pytest.mark.parametrize(
    ("status", "said", "problem"),
    [
        (400, {"error": "invalid_grant"}, Problem.ENDED),
        (401, {"error": {"code": "refresh_token_reused", "message": "used"}}, Problem.ENDED),
        (200, {"error": "bad_refresh_token"}, Problem.ENDED),
        (401, b"no", Problem.ENDED),
        (401, {"error": "invalid_client"}, Problem.REFUSED),
        (400, {"error": "access_denied"}, Problem.DENIED),
        (400, {"error": "expired_token"}, Problem.EXPIRED),
        (503, b"<html>", Problem.UNREACHABLE),
        (429, {"error": "slow"}, Problem.UNREACHABLE),
        (400, {"error": "invalid_scope"}, Problem.REFUSED),
        (200, b"<html>", Problem.UNREACHABLE),
        (200, {"access_token": "with space"}, Problem.UNREACHABLE),
        (200, {"access_token": ""}, Problem.UNREACHABLE),
        (200, {"access_token": "a\r\nb"}, Problem.UNREACHABLE),
    ],
)
def test_a_refused_token_request_has_its_meaning(status, said, problem):
    with pytest.raises(OAuthError) as caught:
        protocol.tokens_of(answer(said, status), asked_at=0.0)
    assert caught.value.problem is problem


def test_a_device_code_has_defaults_and_bounds():
    said = {"device_code": "d", "user_code": "AB-CD", "verification_uri": "https://x.example/d"}
    found = protocol.device_code_of(answer(said))
    assert (found.interval_s, found.lifetime_s, found.full_url) == (5.0, 900.0, "")
    assert protocol.device_code_of(answer({**said, "interval": 0, "expires_in": 10})).interval_s == 1.0


@pytest.mark.parametrize(
    "url", ["", "http://x.example/", "file:///etc/passwd", "javascript:alert(1)", "https://x.example/\x1b", "https://"]
)
def test_a_page_that_is_not_https_is_never_opened(url):
    said = {"device_code": "d", "user_code": "AB", "verification_uri": url}
    with pytest.raises(OAuthError, match="not HTTPS"):
        protocol.device_code_of(answer(said))


def test_a_grant_is_revoked_by_its_refresh_token():
    both = protocol.revoke_request(CLIENT, TokenSet("a", refresh_token="r"))
    assert parse_qs(both.body.decode()) == {"client_id": ["me"], "token": ["r"], "token_type_hint": ["refresh_token"]}
    assert b"token=a" in protocol.revoke_request(CLIENT, TokenSet("a")).body


def test_a_client_at_another_server_keeps_its_paths():
    there = CLIENT.at("http://127.0.0.1:8")
    assert there.token_url == "http://127.0.0.1:8/token"
    assert there.authorize_url == "http://127.0.0.1:8/authorize?tenant=1"
    assert there.device_url == ""


@given(st.binary(max_size=200), st.sampled_from([200, 400, 401, 500]))
def test_no_answer_is_a_crash(body, status):
    for read in (lambda: protocol.tokens_of(HttpAnswer(status, body), asked_at=0.0),
                 lambda: protocol.device_code_of(HttpAnswer(status, body))):  # fmt: skip
        with pytest.raises(OAuthError):
            read()


@given(st.text(max_size=60))
def test_no_token_has_claims_that_crash(token):
    assert isinstance(dict(protocol.claims_of(token)), dict)
