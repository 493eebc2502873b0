"""A secret in a file that only its user can read: one word, a token or a key.

Only `os` is used: the clients count milliseconds.
"""

import os
import stat

MAX_BYTES = 4096
"""No token and no key is nearly as long; whatever is, is another file."""


class SecretFileError(Exception):
    """The file holds no such word, or others could know it; the sentence names the file and never what is in it."""


def read(path: str, what: str) -> str:
    """The word in the file, which is a `what`; one line end after it does not belong to it.

    Raises:
        SecretFileError: there is none, others can read it or could have written it, or it holds something else.
    """
    return word(_content(path, what), f"the {what} file {path}", what)


def word(content: bytes, name: str, what: str) -> str:
    """The one word in what `name` holds, which is a `what`. Raises SecretFileError like `read`."""
    found = content.removesuffix(b"\n").removesuffix(b"\r")
    if not found:
        raise SecretFileError(f"{name} is empty")
    if b"\0" in found:
        raise SecretFileError(f"{name} contains a NUL byte, so it is not a {what}")
    if len(found) > MAX_BYTES or not all(0x20 < byte < 0x7F for byte in found):
        raise SecretFileError(f"{name} must contain only a {what}, which is one word")
    return found.decode()


def _content(path: str, what: str) -> bytes:
    # O_NOFOLLOW: what is judged is what was named. O_NONBLOCK: a FIFO would wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    name = f"the {what} file {path}"
    try:
        if os.path.islink(path):  # for the sentence; O_NOFOLLOW is what refuses it
            raise SecretFileError(f"{name} is a symbolic link; use the path of the file itself")
        descriptor = os.open(path, flags)
        try:
            _check(name, path, os.fstat(descriptor))
            return os.read(descriptor, MAX_BYTES + 2)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SecretFileError(f"{name} cannot be read: {error.strerror}") from error


def _check(name: str, path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SecretFileError(f"{name} is not a regular file")
    if found.st_uid != os.geteuid():
        raise SecretFileError(f"{name} belongs to user {found.st_uid}, not to you")
    if found.st_mode & 0o077:
        raise SecretFileError(f"{name} is open to other users; run `chmod 600 {path}`")
