"""Reads the token for a daemon on another machine from a file that only its user can read."""

from zotd import secret_file
from zotd.client.errors import ClientError

MIN_CHARS = 47
"""Length of `zot_` and 32 random bytes in base64, as `zotctl token create` prints them; anything shorter is invalid."""


def read(path: str) -> str:
    """Return the token in the file, without a newline at its end.

    Raises:
        ClientError: there is no file, other users can read or write it, or it contains no token. The message names the
            file and never quotes its content.
    """
    if not path:
        raise ClientError("a remote daemon requires a token; pass its file with --token-file")
    try:
        token = secret_file.read(path, "token")
    except secret_file.SecretFileError as error:
        raise ClientError(str(error)) from error
    if len(token) < MIN_CHARS:
        raise ClientError(f"the token file {path} is too short for a token, which has {MIN_CHARS} characters")
    return token
