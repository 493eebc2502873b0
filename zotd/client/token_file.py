"""The token for a daemon on another machine, in a file that only its user can read."""

from zotd import secret_file
from zotd.client.errors import ClientError

MIN_CHARS = 47
"""`zot_` and 32 random bytes in base64, as `zotctl token create` says them; what is shorter was cut, or is no token."""


def read(path: str) -> str:
    """The token in the file; one line end after it does not belong to it.

    Raises:
        ClientError: there is none, others can read it or could have written it, or it holds no token. The sentence
            names the file and never what is in it.
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
