"""The token for a daemon on another machine, in a file that only its user can read."""

import os
import stat

from zotd.client.errors import ClientError

MIN_CHARS = 47
"""`zot_` and 32 random bytes in base64, as `zotctl token create` says them; what is shorter was cut, or is no token."""

MAX_BYTES = 4096
"""No token is nearly as long; whatever is, is another file."""


def read(path: str) -> str:
    """The token in the file; one line end after it does not belong to it.

    Raises:
        ClientError: there is none, others can read it or could have written it, or it holds no token. The sentence
            names the file and never what is in it.
    """
    if not path:
        raise ClientError("a daemon on another machine asks for a token: name its file with --token-file")
    token = _content(path).removesuffix(b"\n").removesuffix(b"\r")
    if not token:
        raise ClientError(f"the token file {path} is empty")
    if b"\0" in token:
        raise ClientError(f"the token file {path} holds a NUL byte: it is no token")
    if len(token) < MIN_CHARS:
        raise ClientError(f"the token file {path} holds less than a token, which has {MIN_CHARS} characters")
    if len(token) > MAX_BYTES or not all(0x20 < byte < 0x7F for byte in token):
        raise ClientError(f"the token file {path} holds more than a token, which is one word")
    return token.decode()


def _content(path: str) -> bytes:
    # O_NOFOLLOW: what is judged is what was named. O_NONBLOCK: a FIFO would wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if os.path.islink(path):  # for the sentence; O_NOFOLLOW is what refuses it
            raise ClientError(f"the token file {path} is a symbolic link: name the file itself")
        descriptor = os.open(path, flags)
        try:
            _check(path, os.fstat(descriptor))
            return os.read(descriptor, MAX_BYTES + 2)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ClientError(f"the token file {path} cannot be read: {error.strerror}") from error


def _check(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ClientError(f"the token file {path} is not a file")
    if found.st_uid != os.geteuid():
        raise ClientError(f"the token file {path} belongs to user {found.st_uid}, not to you")
    if found.st_mode & 0o077:
        raise ClientError(f"the token file {path} is open to other users: close it with `chmod 600 {path}`")
