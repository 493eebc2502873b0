"""Anthropic's models on Amazon Bedrock, with requests signed by credentials of AWS (SigV4).

Uses Bedrock's Messages endpoint, whose streams are like Anthropic's own. The credentials are the client's variables
(`Vendor.login_env`) if it has any, else what boto3 finds: profiles, single sign-on, the role of a machine. A session with
an API key of Bedrock needs none of this: that is a plain row of the catalog.
"""

from typing import TypedDict

import anthropic
import httpx2
from botocore.exceptions import BotoCoreError

from zotd.core.retry import Failure, ModelError
from zotd.providers.anthropic.sdk import AnthropicSdk, http_client, timeout
from zotd.providers.shared import Destination, Target
from zotd.providers.shared.conversation import SdkClient


class _Credentials(TypedDict, total=False):
    aws_profile: str
    aws_access_key: str
    aws_secret_key: str
    aws_session_token: str


class BedrockSdk(AnthropicSdk):
    """The SDK's client for Bedrock."""

    repeats = False  # the signature covers the body and the time

    async def post(self, body: bytes, target: Target) -> httpx2.Response:
        """Sign and send one model request; see `AnthropicSdk.post`.

        Raises:
            ModelError: `NO_KEY`; there are no credentials, or they have expired.
        """
        try:
            return await super().post(body, target)
        except (BotoCoreError, RuntimeError) as error:  # the SDK raises the latter when boto3 finds nothing
            sentence = (
                f"there are no valid AWS credentials for {target.vendor.title}: {error}; {target.vendor.key_ways}"
            )
            raise ModelError(Failure.NO_KEY, sentence) from error


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one region and one set of credentials; the caller closes it."""
    login = dict(destination.login)
    http = http_client(destination)
    client = anthropic.AsyncAnthropicBedrockMantle(
        **_credentials(login),
        aws_region=login.get("AWS_REGION") or login.get("AWS_DEFAULT_REGION"),
        base_url=destination.base_url,
        max_retries=0,  # the session repeats requests itself, and shows that it does
        timeout=timeout(),
        http_client=http,
    )
    return SdkClient(BedrockSdk(client, http))


def _credentials(login: dict[str, str]) -> _Credentials:
    if "AWS_ACCESS_KEY_ID" in login and "AWS_SECRET_ACCESS_KEY" in login:
        found: _Credentials = {
            "aws_access_key": login["AWS_ACCESS_KEY_ID"],
            "aws_secret_key": login["AWS_SECRET_ACCESS_KEY"],
        }
        if "AWS_SESSION_TOKEN" in login:
            found["aws_session_token"] = login["AWS_SESSION_TOKEN"]
        return found
    return {"aws_profile": login["AWS_PROFILE"]} if "AWS_PROFILE" in login else {}
