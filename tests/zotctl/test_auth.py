"""`zotctl login`, `logout` and `auth`."""

import json
import os
import pty
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

KEY = "sk-a-key-that-nobody-may-find"


def listed(live, provider="openai"):
    found = json.loads(live.zotctl("auth", "--json")[1])["providers"]
    return next(one for one in found if one["provider"] == provider)


def stored(live):
    return json.loads((live.home / "auth.json").read_text())


def test_a_key_from_a_pipe_is_stored_and_shown_nowhere(live):
    code, out, err = live.zotctl("login", "openai", "--no-check", piped=f"{KEY}\n")
    assert (code, out, err) == (0, "stored the key for OpenAI in auth.json\n", "")
    assert stored(live) == {"openai": {"api_key": KEY}}
    assert (listed(live)["source"], listed(live)["stored"]) == ("auth.json", True)
    _, out, _ = live.zotctl("auth")
    assert ["openai", "auth.json", "OPENAI_API_KEY"] in [line.split() for line in out.splitlines()]
    assert KEY not in out + live.daemon.log


class Vendor(BaseHTTPRequestHandler):
    """Returns a list of models for the right key, and 401 for others."""

    def do_GET(self):
        self.send_response(200 if self.headers["authorization"] == "Bearer sk-right" else 401)
        self.end_headers()

    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture
def vendor():
    with ThreadingHTTPServer(("127.0.0.1", 0), Vendor) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_key_that_its_vendor_refuses_is_not_stored_and_one_that_cannot_be_checked_is(live, vendor):
    url = f"http://127.0.0.1:{vendor.server_port}/v1"
    (live.home / "config.toml").write_text(f'[providers.openai]\nbase_url = "{url}"\n')
    live.zotctl("reload")
    code, out, err = live.zotctl("login", "openai", piped="sk-wrong")
    assert (code, out) == (1, "")
    assert "OpenAI refuses this key (status 401); the key was not stored" in err
    assert live.zotctl("login", "openai", piped="sk-right")[:2] == (0, "stored the key for OpenAI in auth.json\n")
    vendor.shutdown()
    vendor.server_close()
    code, out, err = live.zotctl("login", "openai", piped="sk-other")
    assert (code, "could not check the key: OpenAI cannot be reached" in err) == (0, True)
    assert stored(live) == {"openai": {"api_key": "sk-other"}}


def test_a_key_that_is_typed_is_not_echoed(live):
    terminal, other_side = pty.openpty()
    with live.shell.start(
        "zotctl", "login", "openai", "--no-check", stdin=other_side, stderr=other_side, start_new_session=True
    ) as one:
        os.close(other_side)
        said = ""
        while "key for OpenAI: " not in said:
            said += os.read(terminal, 4096).decode()
        os.write(terminal, f"{KEY}\n".encode())
        out, _ = one.communicate(timeout=40)
    os.set_blocking(terminal, False)
    said += os.read(terminal, 4096).decode()
    os.close(terminal)
    assert (one.returncode, out) == (0, "stored the key for OpenAI in auth.json\n")
    assert KEY not in said
    assert stored(live) == {"openai": {"api_key": KEY}}


def test_logout_deletes_the_key_and_fails_without_one(live):
    live.zotctl("login", "openai", "--no-check", piped=KEY)
    assert live.zotctl("logout", "openai")[:2] == (0, "auth.json no longer has a key for OpenAI\n")
    code, _, err = live.zotctl("logout", "openai")
    assert (code, err) == (1, "zotctl: auth.json has no key for OpenAI; auth.list shows the stored keys\n")
    assert stored(live) == {}


def test_key_in_the_environment_takes_precedence(live):
    live.shell.env["OPENAI_API_KEY"] = "sk-in-the-environment"
    code, out, _ = live.zotctl("login", "openai", "--no-check", "--json", piped=KEY)
    said = json.loads(out)
    assert (code, said["source"], said["stored"]) == (0, "environment", True)
    _, out, _ = live.zotctl("login", "openai", "--no-check", piped=KEY)
    assert out.splitlines()[1] == "zot still uses the key from the environment, which takes precedence"


@pytest.mark.parametrize("provider", ["nobody", "sk-a-key-on-the-command-line"])
def test_an_unknown_vendor_is_refused_before_a_key_is_asked_for(live, provider):
    code, _, err = live.zotctl("login", provider)
    assert code == 1
    assert err.startswith(f'zotctl: unknown provider "{provider}"; known providers: anthropic, openai')


def test_zot_without_a_key_names_the_variable_and_the_command(live):
    code, _, err = live.zot("-p", "hello", "--provider", "anthropic")
    assert code == 1
    assert err == ("zot: no key for Anthropic: set ANTHROPIC_API_KEY, pass --api-key, or run: zotctl login anthropic\n")
    code, _, err = live.zot("-p", "hello")
    assert code == 1
    assert err.startswith(
        "zot: no model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, run zotctl login PROVIDER, "
    )
