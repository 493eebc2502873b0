"""Anthropic's models on Google's Vertex AI, with a login of Google Cloud.

The login are Google's application default credentials, as the daemon finds them: the file that its own
`GOOGLE_APPLICATION_CREDENTIALS` names, `gcloud auth application-default login`, or the account of a machine. A client cannot
name a file: such files may say which program to run.
"""

import asyncio
from collections.abc import Mapping
from threading import Lock
from urllib.parse import quote, urlsplit

import anthropic
import google.auth
import httpx2
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request

from zotd.core.retry import Failure, ModelError
from zotd.providers.anthropic.sdk import AnthropicSdk, http_client, timeout
from zotd.providers.shared import Destination, Target
from zotd.providers.shared.conversation import SdkClient

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)

GLOBAL_HOST = "aiplatform.googleapis.com"

_REGIONS_OF_THEIR_OWN = {"us", "eu"}


class GoogleLogin:
    """Credentials of Google Cloud, looked for once and refreshed when they expire."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: Credentials | None = None

    def token(self) -> str:
        """Return a valid token; blocks. Raises GoogleAuthError."""
        with self._lock:  # two sessions must not refresh at the same time
            if self._found is None:
                self._found, _ = google.auth.default(SCOPES)
            if not self._found.valid:
                self._found.refresh(Request())
            return str(self._found.token)


class VertexSdk(AnthropicSdk):
    """The SDK's client for Vertex AI."""

    repeats = False  # the URL names the model, and tokens expire after an hour

    def __init__(self, client: anthropic.AsyncAnthropicVertex, http: httpx2.AsyncClient, login: GoogleLogin) -> None:
        super().__init__(client, http, names_model=False)
        self._login = login

    def path(self, target: Target) -> str:
        """Return the path of model requests, below the base URL."""
        return f"/publishers/anthropic/models/{quote(target.model.id, safe='@')}:streamRawPredict"

    async def headers(self, target: Target) -> Mapping[str, str]:
        """Return `AnthropicSdk.headers` with a token that is still valid, which the SDK then takes.

        Raises:
            ModelError: `NO_KEY`; there are no credentials, or they have expired.
        """
        try:
            token = await asyncio.to_thread(self._login.token)
        except GoogleAuthError as error:
            sentence = (
                f"there are no valid Google credentials for {target.vendor.title}: {error}; {target.vendor.key_ways}"
            )
            raise ModelError(Failure.NO_KEY, sentence) from error
        return {**await super().headers(target), "Authorization": f"Bearer {token}"}


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one project and region; the caller closes it."""
    login = dict(destination.login)
    region = login.get("CLOUD_ML_REGION", "global")
    base_url = regional(destination.base_url, region)
    http = http_client(destination)
    client = anthropic.AsyncAnthropicVertex(
        region=region,
        base_url=base_url,
        max_retries=0,  # the session repeats requests itself, and shows that it does
        timeout=timeout(),
        http_client=http,
    )
    return SdkClient(VertexSdk(client, http, GoogleLogin()))


def regional(base_url: str, region: str) -> str:
    """Return the URL with the host that serves the region; a configured host stays."""
    if region == "global" or urlsplit(base_url).hostname != GLOBAL_HOST:
        return base_url
    own = region in _REGIONS_OF_THEIR_OWN
    host = f"aiplatform.{region}.rep.googleapis.com" if own else f"{region}-{GLOBAL_HOST}"
    return base_url.replace(GLOBAL_HOST, host, 1)
