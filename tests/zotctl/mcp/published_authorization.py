"""The authorization server of the package oidc-provider, in a process of its own, and somebody with a browser."""

import asyncio
import http.cookiejar
import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

from tests.npm import packages

PROGRAM = Path(packages.__file__).with_name("authorization_server.mjs")

PAGE_S = 20.0

PAGES = 6
"""Most pages of one login."""


class PublishedAuthorization:
    """The server while it is entered."""

    def __init__(self, modules, *, lifetime_s=3600, registers=True, clients=()):
        """`modules`: the directory with the package. `lifetime_s`: of access tokens. `clients` are known in advance."""
        options = {"lifetime_s": lifetime_s, "registers": registers, "clients": list(clients)}
        self._argv = ["node", str(PROGRAM), str(modules), json.dumps(options)]
        self.url = ""
        self.refused = 0
        """How many requests to the MCP server had a token that is not accepted."""

    async def __aenter__(self):
        await asyncio.to_thread(self._start)
        return self

    async def __aexit__(self, *exception):
        await asyncio.to_thread(self._process.communicate, timeout=PAGE_S)

    def _start(self):
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http://")

    def accepts(self, token):
        """Whether a request with this token may be answered."""
        query = urllib.parse.urlencode({"token": token})
        with urllib.request.urlopen(f"{self.url}/accepts?{query}", timeout=PAGE_S) as answer:
            is_accepted = json.load(answer)["accepts"]
        self.refused += not is_accepted
        return is_accepted

    def revoke(self, token, client_id):
        """Revoke a token, as its owner does in the account there."""
        form = urllib.parse.urlencode({"token": token, "client_id": client_id}).encode()
        with urllib.request.urlopen(f"{self.url}/token/revocation", form, timeout=PAGE_S) as answer:
            assert answer.status == 200


class Person:
    """Somebody who logs in and consents, or not."""

    def __init__(self, *, consents=True):
        self.consents = consents
        self.seen = []
        """What the pages asked for: `login`, `consent`."""

    def visit(self, url):
        """Do in a browser what the page asks for, to the page at the end."""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        form = None
        for _ in range(PAGES):
            with browser.open(url, form, timeout=PAGE_S) as page:
                text, url = page.read().decode(), page.url
            prompt = re.search(r'name="prompt" value="(\w+)"', text)
            if prompt is None:
                return
            self.seen.append(prompt[1])
            refuses = prompt[1] == "consent" and not self.consents
            (target,) = re.findall(r'href="([^"]+/abort)"' if refuses else r'action="([^"]+)"', text)
            fields = {"prompt": prompt[1], "login": "ann", "password": "anything"}
            url, form = urllib.parse.urljoin(url, target), None if refuses else urllib.parse.urlencode(fields).encode()
        raise AssertionError(f"more than {PAGES} pages: {self.seen}")
